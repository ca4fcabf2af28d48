"""Denoising: reveal schedules and orders, the packed engine, and the plain reference it must agree with."""

"""The backbones of a config: where their checkpoints and finished adapters come from."""

from __future__ import annotations

from pydantic import Field, model_validator

from entropy_valley.demo.settings import Pretraining
from entropy_valley.experiment.decoding import OwnDecoding
from entropy_valley.model.prompt import BOTH_WAYS, Attention
from entropy_valley.settings import Commit, Direction, Name, Plugin, Repository, Section
from entropy_valley.training.settings import AdapterTraining, EosPadding


class Hub(Section):
    """A repository of the Hugging Face hub."""

    repository: Repository = Field(description="owner/name")
    revision: Commit | None = Field(
        None, description="null: the family's pinned one, else the newest, written to the results"
    )
    licence: str | None = Field(None, description="of a repository that the family does not know")


class BackboneSection(Section):
    """One backbone: a family, and a checkpoint from the hub, from a folder, or pre-trained here."""

    label: str = Field(description="as tables print it")
    family: Plugin = Field(description="docs/backbones.md lists ours; a user's own is module:NAME")
    bos: bool = Field(description="whether the prompt starts with the BOS token")
    hub: Hub | None = None
    folder: str | None = Field(None, description="a local copy of the checkpoint")
    pretraining: Pretraining | None = None
    variant_of: Name | None = Field(
        None, description="another backbone, whose checkpoint this one is and whose other keys it takes over"
    )
    eos_padding: EosPadding | None = Field(
        None, description="`training.loss.eos_padding` of its adapters, where that is to be another one"
    )
    training: AdapterTraining = AdapterTraining()
    adapter_of: Name | None = Field(
        None, description="another backbone, of the same checkpoint, whose adapters it decodes with: it trains none"
    )
    decoding: OwnDecoding = OwnDecoding()
    chat: bool = Field(False, description="put prompts into the chat template of the family")
    shifted: bool | None = Field(
        None, description="read slot i from row i - 1 (true) or row i (false); null: as the family was trained"
    )
    attention: Attention = Field(
        BOTH_WAYS,
        description="in its LoRA-SFT and in decoding; prefix: the prompt attends to itself alone, the canvas to both, "
        "so that a sentence's prompt is computed once",
    )
    decoding_prompt_of: Direction | None = Field(
        None, description="decode behind the prompt of this direction, whatever the direction; null: of its own"
    )
    zero_shot: bool = Field(False, description="decode the bare checkpoint: no adapter is trained")

    @model_validator(mode="after")
    def _one_origin(self) -> BackboneSection:
        if self.pretraining and (self.hub or self.folder):
            raise ValueError("`pretraining` excludes `hub` and `folder`")
        if not (self.hub or self.folder or self.pretraining):
            raise ValueError("needs one of `hub`, `folder`, `pretraining`")
        return self


class Adapter(Section):
    """A finished adapter: a folder, or a repository of the hub, in our layout or the backbone's released one."""

    folder: str | None = Field(None, description="has adapter_config.json and adapter_model.safetensors")
    repository: Repository | None = Field(None, description="owner/name on the Hugging Face hub")
    revision: Commit | None = Field(None, description="null is resolved once and written to the results")
    subfolder: str | None = Field(None, description="of the repository")

    @model_validator(mode="after")
    def _one_origin(self) -> Adapter:
        if (self.folder is None) == (self.repository is None):
            raise ValueError("give either `folder` or `repository`")
        return self

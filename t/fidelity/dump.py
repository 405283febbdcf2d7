#!/usr/bin/env python3
"""Prints transformers' intermediate tensors of one case, to find the first one that differs.

    dump.py CASE [ROWS]    each tensor: its shape, root mean square, and the first values of the
                           first ROWS rows (default 2) and of the last row

The order is that of the arithmetic: patches, each vision block (rows in window order), the merged
features (row-major cells), the embedding with the features in it, each layer, the logits.
"""

import sys

import numpy as np
import torch

import reference


def show(name, tensor, n_rows):
    a = np.asarray(tensor.detach().numpy(), np.float64)
    a = a.reshape(-1, a.shape[-1])
    print(f"{name}  {list(a.shape)}  rms {np.sqrt((a ** 2).mean()):.6f}")
    for i in list(range(min(n_rows, len(a)))) + [len(a) - 1]:
        print(f"  [{i}] " + " ".join(f"{x:.6f}" for x in a[i][:8]))


def first(output):
    return output[0] if isinstance(output, tuple) else output


def main():
    name, n_rows = sys.argv[1], int((sys.argv + ["2"] * 2)[2])
    torch.set_num_threads(1)
    _, cases, model, processor = next(reference.selected([name]))
    inputs = reference.make_inputs(processor, cases[0])
    print("ids " + " ".join(str(i) for i in inputs["input_ids"][0].tolist()))

    def watch(module, label):
        module.register_forward_hook(lambda m, i, out: show(label, first(out), n_rows))

    if "image_grid_thw" in inputs:
        print(f"grid {inputs['image_grid_thw'].tolist()}, window order of the cells "
              f"{model.visual.get_window_index(inputs['image_grid_thw'])[0].tolist()}")
        show("pixel_values", inputs["pixel_values"], n_rows)
    watch(model.visual.patch_embed, "visual.patch_embed")
    for i, block in enumerate(model.visual.blocks):
        watch(block.attn, f"visual.blocks.{i}.attn")
        watch(block, f"visual.blocks.{i}")
    watch(model.visual.merger, "visual.merger, in window order")
    model.model.layers[0].register_forward_pre_hook(
        lambda m, args, kwargs: show("embedded", (args or [kwargs["hidden_states"]])[0], n_rows),
        with_kwargs=True)
    for i, layer in enumerate(model.model.layers):
        watch(layer.self_attn.q_proj, f"layers.{i}.q_proj, before rotation")
        watch(layer.self_attn, f"layers.{i}.self_attn")
        watch(layer, f"layers.{i}")
    watch(model.model.norm, "norm")
    show("logits", torch.from_numpy(reference.prompt_logits(model, inputs)), n_rows)


if __name__ == "__main__":
    main()

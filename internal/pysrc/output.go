package pysrc

import _ "embed"

// kernelOutput is what makes an ipykernel number what its cells send and repeat it
// on request, as jupyter.Kernel.EnableReplay wants it.
//
//go:embed kernel_output.py
var kernelOutput string

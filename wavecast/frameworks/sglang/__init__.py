"""SGLang: the kernel library as its layers, attention, experts and sampler.

`plugin` has the functions of the entry points. Nothing here is imported before SGLang asks for it.
"""

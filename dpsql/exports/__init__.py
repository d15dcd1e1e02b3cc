"""Tables of randomised rows as files: how they are written, and estimates from them.

A file is public once it is written: whoever has it may estimate as often as they like, at no charge and without the policy.
"""

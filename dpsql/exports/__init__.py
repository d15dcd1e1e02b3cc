"""Tables of randomised rows as files: how they are written, and estimates from them.

A file is public once it is written: anyone who has it may estimate any number of times, at no charge and without the policy.
"""

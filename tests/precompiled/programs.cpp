// The precompiled header of these tests belongs to a target, and a target has a source.

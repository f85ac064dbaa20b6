package callback

// HasSynced reports whether the cache has the batches that existed when Run began.
func (b *Batches) HasSynced() bool { return b.informer.HasSynced() }

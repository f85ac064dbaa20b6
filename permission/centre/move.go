package centre

import (
	"context"
	"io"

	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// Export writes all that the store of a configuration keeps.
func Export(ctx context.Context, c Config, to io.Writer) error {
	s, err := store.Open(ctx, c.Store)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Export(ctx, to)
}

// Import reads an export into the store of a configuration, which is new.
func Import(ctx context.Context, c Config, from io.Reader) error {
	s, err := store.Open(ctx, c.Store)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Import(ctx, from)
}

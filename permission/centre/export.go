package centre

import (
	"context"
	"io"

	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// Export writes all tables of the configured store.
func Export(ctx context.Context, c Config, to io.Writer) error {
	s, err := store.Open(ctx, c.Store)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Export(ctx, to)
}

// Import reads an export into the configured store, which must be empty.
func Import(ctx context.Context, c Config, from io.Reader) error {
	s, err := store.Open(ctx, c.Store)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Import(ctx, from)
}

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sigstore/cosign/v3/pkg/oci/mutate"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/cosign/v3/pkg/oci/static"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

// signer signs as `cosign sign` and `cosign sign-blob` do with a key and without a transparency
// log. A nil signer signs nothing.
type signer struct{ signature.SignerVerifier }

// newSigner reads a private key in PEM: PKCS #8, EC, or a key of `cosign generate-key-pair`, whose
// password is in environment variable COSIGN_PASSWORD.
func newSigner(path string) (*signer, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("environment variable COSIGN_KEY: %w", err)
	}
	key, err := cryptoutils.UnmarshalPEMToPrivateKey(raw, func(bool) ([]byte, error) {
		return []byte(os.Getenv("COSIGN_PASSWORD")), nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the key %s of COSIGN_KEY with COSIGN_PASSWORD: %w", path, err)
	}
	loaded, err := signature.LoadDefaultSignerVerifier(key)
	if err != nil {
		return nil, fmt.Errorf("use the key %s of COSIGN_KEY: %w", path, err)
	}
	return &signer{loaded}, nil
}

// image signs an image, and pushes the signature beside it.
func (s *signer) image(ctx context.Context, image name.Digest) error {
	if s == nil {
		return nil
	}
	text, err := payload.Cosign{Image: image}.MarshalJSON()
	if err != nil {
		return err
	}
	encoded, err := s.sign(text)
	if err != nil {
		return err
	}
	layer, err := static.NewSignature(text, encoded)
	if err != nil {
		return err
	}
	registry := ociremote.WithRemoteOptions(remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	signed, err := mutate.AttachSignatureToEntity(ociremote.SignedUnknown(image, registry), layer)
	if err != nil {
		return err
	}
	return ociremote.WriteSignatures(image.Context(), signed, registry)
}

// sign returns the signature of a text in base64.
func (s *signer) sign(text []byte) (string, error) {
	raw, err := s.SignMessage(bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}

// publicKey returns the public key in PEM, for `cosign verify --key`.
func (s *signer) publicKey() ([]byte, error) {
	public, err := s.PublicKey()
	if err != nil {
		return nil, err
	}
	return cryptoutils.MarshalPublicKeyToPEM(public)
}

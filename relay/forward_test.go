package relay

import (
	"context"
	"crypto/x509"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"hdsd/peer"
)

// TestWhoHasNothingToForward is refused: the control plane would take hdsd for it.
func TestWhoHasNothingToForward(t *testing.T) {
	t.Parallel()
	nobody := metadata.NewIncomingContext(t.Context(), nil)
	token := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer x"))
	holder := peer.With(nobody, peer.Caller{Leaf: &x509.Certificate{Raw: []byte("x")}})
	for forward, wants := range map[Forward][3]codes.Code{
		Nothing:           {codes.OK, codes.OK, codes.OK},
		Authorization:     {codes.Unauthenticated, codes.OK, codes.Unauthenticated},
		ClientCertificate: {codes.Unauthenticated, codes.Unauthenticated, codes.OK},
	} {
		s := &Server{options: Options{Forward: forward}}
		for i, client := range []context.Context{nobody, token, holder} {
			if err := s.checkForwarded(client); status.Code(err) != wants[i] {
				t.Errorf("forward %d, client %d: %v, want %s", forward, i, err, wants[i])
			}
		}
	}
}

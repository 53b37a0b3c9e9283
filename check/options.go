package check

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/credentials"

	"hdsd/health"
)

// Options select the coordinator to serve, and the node to be.
type Options struct {
	Server   string            // the coordinator's address, host:port
	Replicas []string          // addresses of its other replicas; when one is lost, the next one is tried
	NodeID   string            // unique among checkers
	Locality health.Locality   // where this checker is
	Metadata map[string]string // matched with the checkers of policies
	Version  string            // of the program
	TLS      *tls.Config       // to the coordinator; nil is plaintext
	Log      zerolog.Logger

	// Credentials, if not nil, are shown to the coordinator on each stream, such as a bearer token.
	Credentials credentials.PerRPCCredentials

	// Explain returns the reason why a server cannot be reached, for the log; nil: the error itself.
	Explain func(ctx context.Context, server string, err error) error

	// Reports selects what to omit from reports.
	Reports Reports

	// MaxDials limits the connections to endpoints that are being established. More
	// have to wait, and their timeout starts afterwards. 0 is 1,024.
	MaxDials int
	// Dial connects to endpoints; nil is the real network.
	Dial Dialer
	// DialServer connects to the coordinator; nil is the real network.
	DialServer func(ctx context.Context, address string) (net.Conn, error)
}

// Reports selects what to omit from reports, like old or unusual checkers, to test how a
// coordinator handles them.
type Reports struct {
	Flat         bool // endpoints_health only, without cluster_endpoints_health
	WithoutCodes bool // no HTTP status codes, as Envoy before 1.38
}

const defaultMaxDials = 1024

// ErrOptions reports options that cannot work.
var ErrOptions = errors.New("checker's options")

func (o *Options) complete() error {
	switch {
	case o.Server == "":
		return fmt.Errorf("%w: the coordinator's address is missing", ErrOptions)
	case o.NodeID == "":
		return fmt.Errorf("%w: the node id is missing", ErrOptions)
	case o.MaxDials < 0:
		return fmt.Errorf("%w: max dials is %d; use 0 for the default", ErrOptions, o.MaxDials)
	case o.MaxDials == 0:
		o.MaxDials = defaultMaxDials
	}
	return nil
}

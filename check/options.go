package check

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/rs/zerolog"

	"hdsd/health"
)

// Options says whom to serve and as who.
type Options struct {
	Server   string            // the coordinator's address, host:port
	NodeID   string            // unique among checkers
	Locality health.Locality   // where this checker is
	Metadata map[string]string // what endpoints' reach is matched with
	Version  string            // of the program
	TLS      *tls.Config       // to the coordinator; nil is plaintext
	Log      zerolog.Logger

	// Reports leaves out of reports what others leave out.
	Reports Reports

	// MaxDials is how many connections to endpoints may be in the making at
	// once; more wait, and their timeout with them. 0 is 1,024.
	MaxDials int
	// Dial connects to endpoints; nil is the real network.
	Dial Dialer
	// DialServer connects to the coordinator; nil is the real network.
	DialServer func(ctx context.Context, address string) (net.Conn, error)
}

// Reports says what is left out of reports, for fleets that mix with old or
// odd checkers and for testing what a coordinator makes of them.
type Reports struct {
	Flat         bool // endpoints_health only, without cluster_endpoints_health
	WithoutCodes bool // no HTTP status codes, as Envoy before 1.38
}

const defaultMaxDials = 1024

// ErrOptions is for options that cannot work.
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

package etcd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"
)

// DefaultTTL is the default time after which etcd ends the session of a silent replica.
const DefaultTTL = 3 * time.Second

// Options are the endpoints of etcd, and the identity of a replica.
type Options struct {
	Endpoints []string    // http://HOST:PORT, or https://; all of one kind
	Prefix    string      // of all keys, such as /hdsd
	TLS       *tls.Config // for https; nil trusts the authorities of the system

	// Username is the user of etcd; "" means that etcd asks for none, or takes the name in the
	// certificate. Password is called for each authentication, so it can read a file that is
	// rotated.
	Username string
	Password func() (string, error)

	ID      string    // of the replica; no two have the same
	Address string    // at which other replicas reach this one
	Version string    // of the program
	Started time.Time // when the process began

	// TTL is rounded up to seconds. etcd may grant more: Status has the granted TTL.
	TTL time.Duration
	Log zerolog.Logger
}

// checked returns the options with their defaults, or an error that names the wrong option.
func (o Options) checked() (Options, error) {
	o.Prefix = strings.TrimRight(o.Prefix, "/")
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	switch {
	case !strings.HasPrefix(o.Prefix, "/"):
		return o, fmt.Errorf("prefix %q: it begins with a slash and has more than that", o.Prefix)
	case !isID(o.ID):
		return o, fmt.Errorf("id %.200q: it is not empty, is UTF-8 without a slash, and has %d bytes at most", o.ID, maxID)
	case o.TTL < 0:
		return o, fmt.Errorf("session TTL %v: it is not negative", o.TTL)
	case o.Username != "" && o.Password == nil:
		return o, fmt.Errorf("user %q has no password", o.Username)
	}
	_, secure, err := addresses(o.Endpoints)
	if err == nil && !secure && o.TLS != nil {
		err = errors.New("there is TLS for endpoints that are not https://")
	}
	if secure && o.TLS == nil {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return o, err
}

// seconds returns the requested TTL.
func (o Options) seconds() int64 { return int64((o.TTL + time.Second - 1) / time.Second) }

// addresses returns the hosts and ports of the endpoints, and reports whether they use https.
func addresses(endpoints []string) (hosts []string, secure bool, err error) {
	if len(endpoints) == 0 {
		return nil, false, errors.New("no endpoints of etcd")
	}
	for i, endpoint := range endpoints {
		location, err := url.Parse(endpoint)
		if err != nil || location.Scheme != "http" && location.Scheme != "https" || location.Path != "" || location.User != nil {
			return nil, false, fmt.Errorf("endpoint %q: write http://HOST:PORT or https://HOST:PORT", endpoint)
		}
		if _, _, err := net.SplitHostPort(location.Host); err != nil {
			return nil, false, fmt.Errorf("endpoint %q: write http://HOST:PORT or https://HOST:PORT: %w", endpoint, err)
		}
		if i > 0 && secure != (location.Scheme == "https") {
			return nil, false, fmt.Errorf("endpoint %q: all endpoints are http:// or all are https://", endpoint)
		}
		secure = location.Scheme == "https"
		hosts = append(hosts, location.Host)
	}
	return hosts, secure, nil
}

package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"hdsd/health"
)

// Node identifies an Envoy.
type Node struct {
	ID       string // unique in the fleet
	Cluster  string // the group of Envoys it belongs to
	Locality health.Locality
	Metadata map[string]string
	Admin    string // ip:port of its admin interface; port 0 picks one
}

// Server says where hdsd is, and how to connect to it.
type Server struct {
	Address string // host:port of its gRPC address
	TLS     *TLS   // nil is plaintext

	// Replicas are the gRPC addresses of the other replicas, if there are several. The Envoy is
	// connected to one of all, and goes on to the next one if that does not answer.
	Replicas []string
}

// TLS names PEM files on the Envoy's machine.
type TLS struct {
	CA               string // authorities to trust
	Certificate, Key string // to show; both or none
	Name             string // in the server's certificate; default: the host of its address
}

// Checker is an Envoy that checks endpoints for hdsd.
type Checker struct {
	Node
	Server
}

// Client is an Envoy that takes clusters and endpoints from hdsd over ADS.
type Client struct {
	Node
	Server
	Delta    bool     // delta xDS, else state of the world
	Clusters []string // take the endpoints of these clusters only; empty: CDS brings all clusters
	Listen   string   // ip:port of a listener that routes HTTP to the cluster Route
	Route    string   // empty: no listener
}

// YAML returns the bootstrap with comments.
func (c Checker) YAML() ([]byte, error) {
	if err := errors.Join(c.Node.check(), c.Server.check()); err != nil {
		return nil, err
	}
	c.Cluster = cmp.Or(c.Cluster, "checkers")
	return []byte(c.text()), nil
}

// YAML returns the bootstrap with comments.
func (c Client) YAML() ([]byte, error) {
	err := errors.Join(c.Node.check(), c.Server.check())
	if c.Route != "" {
		err = errors.Join(err, checkIP("listener", c.Listen))
	}
	if err != nil {
		return nil, err
	}
	c.Cluster = cmp.Or(c.Cluster, "data-planes")
	return []byte(c.text()), nil
}

func (n Node) check() error {
	if n.ID == "" {
		return errors.New("the node id is missing: give each Envoy one of its own")
	}
	return checkIP("admin address", n.Admin)
}

// checkIP checks that Envoy can bind to an address: it accepts no names.
func checkIP(label, hostPort string) error {
	if _, err := netip.ParseAddrPort(hostPort); err != nil {
		return fmt.Errorf("%s %q: want IP:PORT, such as 127.0.0.1:9901 or [::1]:9901", label, hostPort)
	}
	return nil
}

func (s Server) check() error {
	for _, address := range s.addresses() {
		host, port, err := net.SplitHostPort(address)
		if number, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host == "" || number == 0 {
			return fmt.Errorf("server %q: want HOST:PORT of hdsd's gRPC address, such as 10.0.0.5:18000", address)
		}
	}
	if s.TLS != nil && s.TLS.Name == "" && len(s.Replicas) > 0 {
		return errors.New("several servers need a name that the certificates of all have: give --tls-server-name")
	}
	if s.TLS != nil && s.TLS.CA == "" {
		return errors.New("the authorities to trust are missing: without them TLS proves nothing")
	}
	if s.TLS != nil && (s.TLS.Certificate == "") != (s.TLS.Key == "") {
		return errors.New("a certificate needs its private key, and the other way round")
	}
	return nil
}

// addresses returns the addresses of all replicas.
func (s Server) addresses() []string { return append([]string{s.Address}, s.Replicas...) }

// named reports whether an address of hdsd has a name, which has to be resolved.
func (s Server) named() bool {
	return slices.ContainsFunc(s.addresses(), func(address string) bool {
		host, _, _ := net.SplitHostPort(address) // checked before
		_, err := netip.ParseAddr(host)
		return err != nil
	})
}

// certificateName returns the name that hdsd's certificate must have.
func (s Server) certificateName() string {
	host, _, _ := net.SplitHostPort(s.Address) // checked before
	return cmp.Or(s.TLS.Name, host)
}

// byIP reports whether the name in the certificate is an IP address.
func (s Server) byIP() bool {
	_, err := netip.ParseAddr(s.certificateName())
	return err == nil
}

package specifier

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
)

// Shape stands for an endpoint as sent to a checker, without its address.
type Shape uint64

// Shapes returns, for each endpoint, a hash of its part of a specifier, without the parts that
// only identify the endpoint and its cluster. Of an IP address only its kind counts. Of a port
// and an endpoint's plain host name, only that there is one. Of the names of the cluster, and of
// the host in its checks, only their punctuation.
func (c *Cluster) Shapes() []Shape {
	if len(c.Endpoints) == 0 {
		return nil
	}
	forms := make([][]byte, len(c.forms))
	for i, f := range c.forms {
		forms[i], _ = proto.MarshalOptions{Deterministic: true}.Marshal(c.outline(f)) // a form that fails is never sent
	}
	type kind struct {
		form int32
		text string
	}
	cache := map[kind]Shape{}
	shapes := make([]Shape, len(c.Endpoints))
	for i := range c.Endpoints {
		e := &c.Endpoints[i]
		k := kind{e.form, e.outline()}
		shape, ok := cache[k]
		if !ok {
			h := sha256.New()
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(forms[e.form]))))
			h.Write(forms[e.form])
			h.Write([]byte(k.text))
			shape = Shape(binary.BigEndian.Uint64(h.Sum(nil)))
			cache[k] = shape
		}
		shapes[i] = shape
	}
	return shapes
}

// outline returns a form without the names that only identify the cluster.
func (c *Cluster) outline(f *wireForm) *healthv3.ClusterHealthCheck {
	form := proto.CloneOf(f.start())
	form.ClusterName = outlineParts(c.Name)
	if f.name != c.Name {
		form.ClusterName += "#" // the rest follows from the checks and sockets
	}
	for _, check := range form.GetHealthChecks() {
		if h := check.GetHttpHealthCheck(); h != nil {
			h.Host = outlineParts(h.GetHost())
		}
		if g := check.GetGrpcHealthCheck(); g != nil {
			g.Authority = outlineParts(g.GetAuthority())
		}
	}
	return form
}

// Checks returns the health checks as sent to checkers, or nil if nothing is checked. They must
// not be changed.
func (c *Cluster) Checks() []*corev3.HealthCheck {
	if len(c.forms) == 0 {
		return nil
	}
	return c.forms[0].checks
}

// outline returns an endpoint without the parts that only identify it.
func (e *Endpoint) outline() string {
	if e.special == nil {
		host, _ := hostPort(e.Address)
		return outlineHost(host)
	}
	return outline(e.special)
}

func outline(e *endpointv3.Endpoint) string {
	e = proto.CloneOf(e)
	e.Hostname = outlineName(e.GetHostname())
	outlineAddress(e.GetAddress())
	for _, additional := range e.GetAdditionalAddresses() {
		outlineAddress(additional.GetAddress())
	}
	if h := e.GetHealthCheckConfig(); h != nil {
		h.Hostname = outlineName(h.GetHostname())
		h.PortValue = min(h.GetPortValue(), 1)
		outlineAddress(h.GetAddress())
	}
	text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(e)
	return "m" + string(text)
}

func outlineAddress(a *corev3.Address) {
	switch a := a.GetAddress().(type) {
	case *corev3.Address_SocketAddress:
		a.SocketAddress.Address = outlineHost(a.SocketAddress.GetAddress())
		if port, ok := a.SocketAddress.GetPortSpecifier().(*corev3.SocketAddress_PortValue); ok {
			port.PortValue = min(port.PortValue, 1)
		}
	case *corev3.Address_Pipe:
		a.Pipe.Path = "path"
	}
}

// outlineHost returns the kind of an IP address, and anything else unchanged.
func outlineHost(host string) string {
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return host
	case ip.Is4():
		return "4"
	case ip.Zone() != "":
		return "6%"
	case ip.Is4In6():
		return "4in6"
	}
	return "6"
}

// longestName is the length of the longest name that only identifies something.
const longestName = 253

// outlineName returns "name" for a plain host name, and anything else unchanged.
func outlineName(name string) string {
	if name == "" || len(name) > longestName || !isPlain(name) {
		return name
	}
	return "name"
}

// outlineParts returns a name with each plain part as "n": "outbound|80||web.example"
// becomes "n|n||n".
func outlineParts(name string) string {
	if len(name) > longestName {
		return name
	}
	var outline []byte
	for i := range len(name) {
		switch plain := isPlain(name[i : i+1]); {
		case !plain:
			outline = append(outline, name[i])
		case i == 0 || !isPlain(name[i-1:i]):
			outline = append(outline, 'n')
		}
	}
	return string(outline)
}

// isPlain reports whether a text has only the characters of host names.
func isPlain(text string) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

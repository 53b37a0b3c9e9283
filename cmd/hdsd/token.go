package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"google.golang.org/grpc/credentials"
)

// tokenVariable is where commands take a bearer token from. There is no flag: other
// users of the machine can read command lines.
const tokenVariable = "HDSD_TOKEN"

// token is a bearer token.
type token string

// tokenFor gives the token to show to a server, empty without one.
func tokenFor(server string, secure bool) (token, error) {
	text := strings.TrimSpace(os.Getenv(tokenVariable))
	switch {
	case text == "":
		return "", nil
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", usageError{fmt.Errorf("%s holds characters that no token has", tokenVariable)}
	case !secure && !isLoopback(server):
		return "", usageError{fmt.Errorf("%s would be readable on its way to %s: give --tls-ca, or unset it", tokenVariable, server)}
	}
	return token(text), nil
}

func isLoopback(server string) bool {
	host, _, _ := net.SplitHostPort(server) // checked before
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(t)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. tokenFor has
// looked already.
func (token) RequireTransportSecurity() bool { return false }

var _ credentials.PerRPCCredentials = token("")

package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"google.golang.org/grpc/credentials"
)

// tokenVariable is the variable with the bearer token of commands. There is no flag: other users
// of the machine can read command lines.
const tokenVariable = "HDSD_TOKEN"

// token is a bearer token.
type token string

// token returns the token to show to the server, empty without one.
func (c *client) token(secure bool) (token, error) {
	if c.tokenFile == "" {
		return tokenFor(c.server, secure, tokenVariable, os.Getenv(tokenVariable))
	}
	text, err := os.ReadFile(c.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return tokenFor(c.server, secure, c.tokenFile, string(text))
}

// tokenFor returns a token from origin, if the server may get it.
func tokenFor(server string, secure bool, origin, text string) (token, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", nil
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", usageError{fmt.Errorf("%s holds characters that no token has", origin)}
	case !secure && !isLoopback(server):
		return "", usageError{fmt.Errorf("%s would be readable on its way to %s: give --tls-ca, or leave it out", origin, server)}
	}
	return token(text), nil
}

// isLoopback reports whether all servers of a list are on this machine.
func isLoopback(servers string) bool {
	return !slices.ContainsFunc(strings.Split(servers, ","), func(server string) bool { return !isOnLoopback(server) })
}

func isOnLoopback(server string) bool {
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

// presenter reads a token that may change, such as one in a file, at each call.
type presenter func() (token, error)

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (p presenter) GetRequestMetadata(ctx context.Context, urls ...string) (map[string]string, error) {
	present, err := p()
	if err != nil || present == "" {
		return nil, err
	}
	return present.GetRequestMetadata(ctx, urls...)
}

// RequireTransportSecurity implements credentials.PerRPCCredentials, like that of token.
func (presenter) RequireTransportSecurity() bool { return false }

var (
	_ credentials.PerRPCCredentials = token("")
	_ credentials.PerRPCCredentials = presenter(nil)
)

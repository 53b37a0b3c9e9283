package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// unexplained is an error without advice of diagnose.
type unexplained struct{ error }

const speaksHTTP = "speaks HTTP: it may be hdsd's HTTP address, and the gRPC address (port 18000 by default) is needed"

// diagnose finds out why an address does not answer with a TLS configuration (nil: in
// plaintext), and returns advice. Without a better explanation it shows the error of gRPC.
func diagnose(ctx context.Context, server string, config *tls.Config, message string) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
	var name *net.DNSError
	switch {
	case errors.As(err, &name):
		return fmt.Errorf("--server %s: unknown host %s", server, name.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens at %s: is 'hdsd serve' running there? --server or HDSD_SERVER name another address", server)
	case err != nil:
		return fmt.Errorf("%s cannot be reached: %w; --server or HDSD_SERVER name another address", server, err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(lookTimeout)); err != nil {
		return err
	}
	advice, err := tryTLS(connection, server, config)
	switch {
	case advice != "":
		return fmt.Errorf("%s %s", server, advice)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s takes connections, but does not answer within %s: it hangs, is stopped, or has too much to do; look at its log, or ask /healthz of its HTTP address", server, lookTimeout)
	}
	return unexplained{fmt.Errorf("%s answers, but not as an hdsd does: %s", server, message)}
}

// tryTLS tries TLS, and describes how the server differs from the expected one. The error is
// that of the handshake, if it failed.
func tryTLS(connection net.Conn, server string, config *tls.Config) (advice string, err error) {
	host, _, _ := net.SplitHostPort(server)                                    // checked before
	try := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} // no data goes over it
	if config != nil {
		try = config.Clone()
	}
	try.NextProtos = []string{"h2"}
	if try.ServerName == "" {
		try.ServerName = host
	}
	secure := tls.Client(connection, try)
	err = secure.Handshake()
	if err == nil && config != nil {
		_, err = secure.Read(make([]byte, 1)) // TLS 1.3 rejects the client's certificate only here
	}
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var peer *net.OpError
	alert := errors.As(err, &peer) && peer.Op == "remote error" // an alert of TLS
	switch {
	case errors.As(err, &record) && strings.HasPrefix(string(record.RecordHeader[:]), "HTTP"):
		return speaksHTTP, err
	case errors.As(err, &record) && config != nil:
		return "speaks no TLS: leave out --tls-ca and its like", err
	case errors.As(err, &authority):
		return "shows a certificate that the authorities of --tls-ca did not sign", err
	case errors.As(err, &name):
		return fmt.Sprintf("shows a certificate for other names (%v): name it so in --server, or by --tls-server-name", err), err
	case errors.As(err, &invalid):
		return fmt.Sprintf("shows a certificate that is not valid: %v", err), err
	case alert && config != nil && len(config.Certificates) == 0:
		return fmt.Sprintf("takes only clients with a certificate (%v): give --tls-cert and --tls-key", err), err
	case alert && config != nil:
		return fmt.Sprintf("refuses the certificate of --tls-cert: %v", err), err
	case config == nil && (err == nil || alert):
		return "speaks TLS: give --tls-ca FILE, the authorities to trust", err
	}
	return "", err
}

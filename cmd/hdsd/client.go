package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

const (
	defaultServer = "127.0.0.1:18000"
	askTimeout    = 30 * time.Second
	maxAnswer     = 64 << 20 // bytes
)

// client is how a query command reaches the coordinator and shows its answer.
type client struct {
	server string
	tls    tlsFlags
	output string
	limit  int
}

// tlsFlags are the certificates a client shows and trusts.
type tlsFlags struct {
	ca, certificate, key string
}

func (f *tlsFlags) addTo(command *cobra.Command) {
	command.Flags().StringVar(&f.ca, "tls-ca", "", "PEM `file` of the authorities to trust; turns TLS on")
	command.Flags().StringVar(&f.certificate, "tls-cert", "", "PEM `file` of the certificate to show")
	command.Flags().StringVar(&f.key, "tls-key", "", "PEM `file` of its private key")
}

// config gives the TLS configuration, nil without TLS.
func (f *tlsFlags) config() (*tls.Config, error) {
	if f.ca == "" {
		if f.certificate != "" || f.key != "" {
			return nil, usageError{fmt.Errorf("--tls-cert and --tls-key need --tls-ca, the authorities to trust")}
		}
		return nil, nil
	}
	pem, err := os.ReadFile(f.ca)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--tls-ca: %s holds no PEM certificate", f.ca)
	}
	if f.certificate != "" || f.key != "" {
		pair, err := tls.LoadX509KeyPair(f.certificate, f.key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// addServerFlag adds the flag that names the coordinator.
func addServerFlag(command *cobra.Command, server *string) {
	byDefault := cmp.Or(os.Getenv("HDSD_SERVER"), defaultServer)
	command.Flags().StringVar(server, "server", byDefault, "`HOST:PORT` of the coordinator's gRPC address (HDSD_SERVER)")
}

func (c *client) addFlags(command *cobra.Command) {
	addServerFlag(command, &c.server)
	command.Flags().StringVarP(&c.output, "output", "o", "table", "table, json (an object a line) or csv")
	command.Flags().IntVar(&c.limit, "limit", 0, "show at most so many (0: all)")
	c.tls.addTo(command)
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "csv"}, cobra.ShellCompDirectiveNoFileComp))
}

// ask connects and calls do, and turns what went wrong into advice.
func (c *client) ask(ctx context.Context, do func(context.Context, hdsdv1.QueryClient) error) error {
	if c.limit < 0 {
		return usageError{fmt.Errorf("--limit %d: want a number of at least 1, or 0 for all", c.limit)}
	}
	config, err := c.tls.config()
	if err != nil {
		return err
	}
	transport := insecure.NewCredentials()
	if config != nil {
		transport = credentials.NewTLS(config)
	}
	connection, err := grpc.NewClient(c.server, grpc.WithTransportCredentials(transport),
		grpc.WithUnaryInterceptor(impatient), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return usageError{fmt.Errorf("--server %q: %w", c.server, err)}
	}
	defer connection.Close()
	return c.advise(do(ctx, hdsdv1.NewQueryClient(connection)))
}

// impatient bounds each call, not all the pages of an answer together.
func impatient(ctx context.Context, method string, request, answer any, connection *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return call(ctx, method, request, answer, connection, options...)
}

func (c *client) advise(err error) error {
	answer, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	switch answer.Code() {
	case codes.Unavailable:
		return fmt.Errorf("no coordinator answers at %s (%s): is 'hdsd serve' running there? --server or HDSD_SERVER name another", c.server, answer.Message())
	case codes.NotFound:
		return fmt.Errorf("%s; 'hdsd clusters' lists the clusters", answer.Message())
	case codes.DeadlineExceeded:
		return fmt.Errorf("%s did not answer within %s", c.server, askTimeout)
	}
	return fmt.Errorf("%s", answer.Message())
}

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/table"
)

const (
	defaultServer = "127.0.0.1:18000"
	askTimeout    = 30 * time.Second
	maxAnswer     = 64 << 20 // bytes
)

// Long watches check whether the coordinator is still there, and look for one that is
// back.
var (
	alive        = keepalive.ClientParameters{Time: 15 * time.Second, Timeout: 10 * time.Second}
	reconnecting = grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: shortestPause, Multiplier: 2, Jitter: 0.5, MaxDelay: longestPause},
		MinConnectTimeout: 5 * time.Second,
	}
)

// client is the connection of a query command to the coordinator, and the format of its answer.
type client struct {
	server string
	tls    tlsFlags
	output string
	color  string
	limit  int
	filter filter

	tokenFile string

	noPager bool
	live    bool       // the output goes on: it is not paged
	total   func() int // how many rows a list would have without filters; nil or below 0: not known

	cluster, address string // the arguments; empty means all
	shown            atomic.Int64
	explained        bool // the user knows why there are no rows

	empty   emptyTable
	filters []string  // the given flags that leave rows out
	errors  io.Writer // for messages beside the rows
}

// tlsFlags are a client's certificates and authorities.
type tlsFlags struct {
	ca, certificate, key, name string
}

func (f *tlsFlags) addTo(command *cobra.Command) {
	command.Flags().StringVar(&f.ca, "tls-ca", "", "PEM `file` of the authorities to trust; turns TLS on")
	command.Flags().StringVar(&f.certificate, "tls-cert", "", "PEM `file` of the client certificate")
	command.Flags().StringVar(&f.key, "tls-key", "", "PEM `file` of its private key")
	command.Flags().StringVar(&f.name, "tls-server-name", "", "`name` that the server's certificate must hold (default: the host of --server)")
	completeWords(command, "tls-server-name")
}

// fromEnvironment takes the files from HDSD_TLS_CA, HDSD_TLS_CERT and HDSD_TLS_KEY,
// where no flag names them.
func (f *tlsFlags) fromEnvironment(command *cobra.Command) {
	for name, value := range map[string]*string{"tls-ca": &f.ca, "tls-cert": &f.certificate, "tls-key": &f.key} {
		variable := "HDSD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		*value = os.Getenv(variable)
		command.Flags().Lookup(name).Usage += " (" + variable + ")"
	}
}

// config returns the TLS configuration, nil without TLS.
func (f *tlsFlags) config() (*tls.Config, error) {
	if f.ca == "" {
		if *f != (tlsFlags{}) {
			return nil, usageError{errors.New("--tls-cert, --tls-key and --tls-server-name need --tls-ca (or HDSD_TLS_CA), the authorities to trust")}
		}
		return nil, nil
	}
	pem, err := os.ReadFile(f.ca)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), ServerName: f.name}
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
	command.Flags().Lookup("server").DefValue = defaultServer // help and man pages must not depend on the environment
	completeWords(command, "server")
}

// severalServers is the usage of --server where it takes all replicas.
const severalServers = "`HOST:PORT` of the coordinator's gRPC address; of all replicas, with commas between (HDSD_SERVER)"

// checkServer refuses an invalid server address.
func checkServer(server string) error {
	if _, port, err := net.SplitHostPort(server); err != nil || port == "" {
		return usageError{fmt.Errorf("--server %q: want HOST:PORT, such as 10.0.0.5:18000", server)}
	}
	return nil
}

// completeWords makes shells offer the values of a flag, and no files.
func completeWords(command *cobra.Command, flag string, values ...string) {
	_ = command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// addConnection adds the flags that say how to reach the coordinator.
func (c *client) addConnection(command *cobra.Command) {
	addServerFlag(command, &c.server)
	c.tls.addTo(command)
	c.tls.fromEnvironment(command)
	command.Flags().StringVar(&c.tokenFile, "token-file", "", "`file` of a bearer token to show (default: the token in HDSD_TOKEN)")
}

func (c *client) addFlags(command *cobra.Command) {
	c.addConnection(command)
	command.Flags().StringVarP(&c.output, "output", "o", "table", "table, wide (a table with all columns), json (an object a line) or csv")
	command.Flags().IntVar(&c.limit, "limit", 0, "show at most this many (0: all)")
	command.Flags().StringVar(&c.color, "color", "auto", "`when` tables have colour: auto (on a terminal, unless NO_COLOR is set), always or never")
	command.Flags().BoolVar(&c.noPager, "no-pager", false, "do not show what is longer than the terminal in the program that PAGER names")
	c.filter.addTo(command)
	completeWords(command, "output", "table", "wide", "json", "csv")
	completeWords(command, "color", "auto", "always", "never")
	completeWords(command, "limit")
}

// subject reads the arguments CLUSTER and ADDRESS.
func (c *client) subject(args []string) (cluster, address string) {
	if len(args) > 0 {
		c.cluster = args[0]
	}
	if len(args) > 1 {
		c.address = args[1]
	}
	return c.cluster, c.address
}

// printer returns a printer that counts rows. A table shows the narrow columns; all of them
// with -o wide, or if none are named.
func (c *client) printer(command *cobra.Command, header []string, narrow ...string) (printer, error) {
	if c.limit < 0 {
		return nil, usageError{fmt.Errorf("--limit %d: want a number of at least 1, or 0 for all", c.limit)}
	}
	if err := c.filter.check(); err != nil {
		return nil, err
	}
	c.filters, c.errors = givenFilters(command), command.ErrOrStderr()
	out := command.OutOrStdout()
	screen, err := table.ScreenOf(out, c.color)
	if err != nil {
		return nil, usageError{err}
	}
	var pages *pager
	if pager := newPager(out); pager != nil && c.isTable() && !c.noPager && !c.live {
		pages, out = pager, pager
	}
	p, err := newPrinter(c.output, screen, out, header, narrow)
	if err != nil {
		return nil, err
	}
	p = counting{p, &c.shown}
	if c.isTable() && !c.live && table.IsTerminal(command.OutOrStdout()) {
		p = ending{printer: p, client: c, w: out, pages: pages}
	}
	return p, nil
}

// isTable reports whether the output is for people.
func (c *client) isTable() bool { return c.output == "table" || c.output == "wide" }

// connect returns a connection to the coordinator, which connects on first use.
func (c *client) connect() (*grpc.ClientConn, error) {
	if err := checkServer(c.server); err != nil {
		return nil, err
	}
	config, err := c.tls.config()
	if err != nil {
		return nil, err
	}
	transport := insecure.NewCredentials()
	if config != nil {
		transport = credentials.NewTLS(config)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport), grpc.WithConnectParams(reconnecting), grpc.WithKeepaliveParams(alive),
		grpc.WithUnaryInterceptor(withTimeout), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
	}
	if mine, err := c.token(config != nil); err != nil {
		return nil, err
	} else if mine != "" {
		options = append(options, grpc.WithPerRPCCredentials(mine))
	}
	connection, err := grpc.NewClient(c.server, options...)
	if err != nil {
		return nil, usageError{fmt.Errorf("--server %q: %w", c.server, err)}
	}
	return connection, nil
}

// ask connects and calls do, and turns errors into advice.
func (c *client) ask(command *cobra.Command, do func(context.Context, hdsdv1.QueryClient) error) error {
	connection, err := c.connect()
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, query := command.Context(), hdsdv1.NewQueryClient(connection)
	warnFrozen(ctx, hdsdv1.NewControlClient(connection), command.ErrOrStderr())
	defer c.startProgress(command)()
	if err := do(ctx, query); err != nil {
		return c.advise(ctx, query, err)
	}
	c.warnAbsent(ctx, query, command.ErrOrStderr())
	c.explainEmpty(func() *timestamppb.Timestamp { return historyBegan(ctx, query) })
	return nil
}

// startProgress counts rows at the terminal while the output goes elsewhere. Rows at
// the terminal are their own progress.
func (c *client) startProgress(command *cobra.Command) (stop func()) {
	if table.IsTerminal(command.OutOrStdout()) {
		return func() {}
	}
	return startProgress(command.ErrOrStderr(), func() string { return fmt.Sprintf("%d rows", c.shown.Load()) })
}

// withTimeout bounds each call, not all pages together.
func withTimeout(ctx context.Context, method string, request, answer any, connection *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return call(ctx, method, request, answer, connection, options...)
}

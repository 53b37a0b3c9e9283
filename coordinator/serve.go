package coordinator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	channelz "google.golang.org/grpc/channelz/service"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"hdsd/api"
	"hdsd/config"
	"hdsd/csds"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/hds"
	"hdsd/page"
	"hdsd/peer/access/guard"
	"hdsd/peer/certs"
	"hdsd/peer/limit"
	"hdsd/peer/limit/inflight"
)

const (
	headerTimeout  = 10 * time.Second // for a client to send the headers, and again for the body
	answerTimeout  = 2 * time.Minute  // for a client to read a response
	idleTimeout    = 2 * time.Minute  // between two requests on a connection
	drainTimeout   = 3 * time.Second  // for open calls when hdsd stops
	maxHeaderBytes = 64 << 10
)

// servers are the gRPC and the HTTP server with their listeners.
type servers struct {
	grpc           *grpc.Server
	grpcListener   net.Listener
	health         *health.Server
	http           *http.Server
	httpListener   net.Listener
	watched        []*watched   // the two above
	probes         *http.Server // nil without probes.address
	probesListener net.Listener
	admin          *admin // nil without admin.address
	calls          *calls
	guard          *guard.Guard
	bounds         *bounds
	refusals       *planeRefusals
	routes         *routes
	queries        *api.Service
}

// listen binds both addresses, before anything else happens: one may be in use. It
// serves nothing yet.
func listen(c *configv1.Config, log zerolog.Logger, counters *calls, g *guard.Guard, b *bounds) (*servers, error) {
	s := &servers{health: health.NewServer(), calls: counters, guard: g, bounds: b}
	var err error
	if s.grpcListener, err = net.Listen("tcp", c.GetGrpc().GetAddress()); err != nil {
		return nil, fmt.Errorf("grpc.address: %w", err)
	}
	if s.httpListener, err = net.Listen("tcp", c.GetHttp().GetAddress()); err != nil {
		s.grpcListener.Close()
		return nil, fmt.Errorf("http.address: %w", err)
	}
	if address := c.GetProbes().GetAddress(); address != "" {
		if s.probesListener, err = net.Listen("tcp", address); err != nil {
			s.close()
			return nil, fmt.Errorf("probes.address: %w", err)
		}
	}
	if address := c.GetAdmin().GetAddress(); address != "" {
		if s.admin, err = newAdmin(address, c.GetDataDir(), log); err != nil {
			s.close()
			return nil, err
		}
	}
	if err := s.secure(c, log); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// secure makes the servers, with TLS if the configuration has it.
func (s *servers) secure(c *configv1.Config, log zerolog.Logger) error {
	watch := func(name string, on net.Listener, from *configv1.Listener, protocols ...string) (*watched, error) {
		w, err := s.calls.watch(name, on, c.GetLimits(), from, protocols...)
		s.watched = append(s.watched, w)
		return w, err
	}
	forGRPC, err := watch("grpc", s.grpcListener, c.GetGrpc(), "h2")
	if err != nil {
		return err
	}
	forHTTP, err := watch("http", s.httpListener, c.GetHttp())
	if err != nil {
		return err
	}
	s.calls.unserved.relay = c.GetRelay() != nil
	options := append(append(s.calls.unserved.options(), hds.ServerOptions(hds.Options{
		MaxMessageBytes: int(c.GetLimits().GetMaxMessageBytes()), MoveAfter: limit.SoftAge(c.GetGrpc().GetMaxConnectionAge().AsDuration()),
	})...), grpc.MaxConcurrentStreams(c.GetLimits().GetMaxStreamsPerConnection()), grpc.MaxHeaderListSize(maxHeaderBytes))
	secured := insecure.NewCredentials()
	if s.grpcListener = forGRPC; forGRPC.tls != nil {
		secured = credentials.NewTLS(forGRPC.tls.Config())
	}
	secured = newHandshakes(secured, forGRPC.tls != nil, log, s.bounds.to)
	options = append(append(options, s.bounds.bytes.ServerOptions(secured)...), grpc.ChainUnaryInterceptor(api.Delivered(inflight.After, inflight.End)))
	options = append(append(options, s.calls.options()...), s.guard.ServerOptions(mutual(c.GetGrpc()))...)
	options = append(options, s.bounds.requests.options()...)
	options = append(options, grpc.ChainStreamInterceptor(s.bounds.streams.intercept)) // by the caller that the guard knows
	s.grpc = grpc.NewServer(options...)
	newHTTP := func() *http.Server {
		return &http.Server{
			ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ConnContext: inContext,
			ErrorLog: stdlog.New(errorLog{log}, "", 0), DisableGeneralOptionsHandler: true, // OPTIONS * is a request as any other
		}
	}
	if s.http = newHTTP(); s.probesListener != nil {
		s.probes, s.probesListener = newHTTP(), limit.Listen(s.probesListener, s.calls.listenerOptions(c.GetLimits()))
	}
	if s.admin != nil {
		s.admin.server, s.admin.listener = newHTTP(), limit.Listen(s.admin.listener, s.calls.listenerOptions(c.GetLimits()))
	}
	if s.httpListener = forHTTP; forHTTP.tls != nil {
		s.httpListener = tls.NewListener(forHTTP, forHTTP.tls.Config())
	}
	return nil
}

// mutual reports whether a listener demands client certificates.
func mutual(l *configv1.Listener) bool { return certs.Mutual(l.GetTls()) }

// register registers the services with the servers.
func (c *Coordinator) register() error {
	c.hds.Register(c.servers.grpc)
	if c.relay != nil {
		c.relay.Register(c.servers.grpc)
	} else {
		c.eds.Register(c.servers.grpc)
	}
	c.csds = csds.NewServer(csds.Options{Bodies: c.servers.bounds.bodies, MaxBytes: config.LargestAnswer(c.started.GetLimits())}, c.query.StatusSources()...)
	decoded := &registrar{c.servers.grpc, &c.servers.bounds.requests}
	c.csds.Register(decoded)
	queries := c.bounded(api.NewService(c.query))
	queries.Register(decoded)
	c.servers.queries = queries
	operators := api.NewControl(&control{
		core: c.core, store: c.store, feed: c.feed, hub: c.hub, backups: newBackups(c.store, c.core.done, c.registry, c.log),
	})
	operators.Register(decoded)
	grpc_health_v1.RegisterHealthServer(c.servers.grpc, c.servers.health)
	reflection.Register(c.servers.grpc)
	channelz.RegisterChannelzServiceToServer(c.servers.grpc)
	rest, err := queries.Handler()
	if err != nil {
		return err
	}
	changes, err := operators.Handler()
	if err != nil {
		return err
	}
	mux, counted := &routes{ServeMux: http.NewServeMux()}, c.servers.calls.counted
	c.servers.routes = mux
	mux.Handle("/v1/", counted("/v1/", shallow(operators.Mark(rest))))
	mux.Handle(api.FreezePath, counted("/v1/", operators.Mark(changes)))
	mux.Handle(api.OverridesPath, counted("/v1/", operators.Mark(changes)))
	mux.Handle(api.TrustPath, counted("/v1/", operators.Mark(changes)))
	mux.Handle(api.ClockPath, counted("/v1/", operators.Mark(changes)))
	mux.Handle(api.PreviewPath, counted("/v1/", operators.Mark(changes)))
	mux.Handle(api.SourcesPath, counted("/v1/", operators.Mark(changes)))
	mux.Handle(api.NotifyPath, counted("/v1/", operators.Mark(changes)))
	mux.Handle(api.AnnotationsPath, counted("/v1/", operators.Mark(changes)))
	mux.Handle(api.AuditPath, counted("/v1/", operators.Mark(changes)))
	mux.Handle(csds.Path, counted(csds.Path, c.csds.Handler()))
	dataPlanes := c.eds.Handler()
	mux.Handle(eds.EndpointsPath, counted(eds.EndpointsPath, dataPlanes))
	mux.Handle(eds.ClustersPath, counted(eds.ClustersPath, dataPlanes))
	checkers := c.hds.Handler()
	mux.Handle(hds.FetchPath, counted(hds.FetchPath, checkers))
	mux.Handle(hds.FetchPathV2, counted(hds.FetchPathV2, checkers))
	if err := c.servePage(mux); err != nil {
		return err
	}
	c.serveProbes(mux)
	c.servers.http.Handler = timed(moving(patiently(c.guarded(c.servers.guard.Handler(mutual(c.started.GetHttp()), mux)))))
	if c.servers.probes != nil {
		probes := &routes{ServeMux: http.NewServeMux()}
		c.serveProbes(probes)
		c.servers.probes.Handler = timed(patiently(probes.only(c.guarded(probes))))
	}
	if a := c.servers.admin; a != nil {
		a.server.Handler = timed(patiently(c.guarded(c.servers.guard.Handler(false, a.handler()))))
		c.core.took = a.took
	}
	return nil
}

// servePage registers the page for browsers.
func (c *Coordinator) servePage(mux *routes) error {
	files, err := page.Handler()
	for _, path := range page.Paths() {
		if path == "/" {
			path = "/{$}" // and nothing below it
		}
		mux.Handle("GET "+path, c.servers.calls.counted("page", files))
	}
	return err
}

// serveProbes registers what says how hdsd itself is.
func (c *Coordinator) serveProbes(mux *routes) {
	counted := c.servers.calls.counted
	mux.Handle("GET /metrics", counted("/metrics", promhttp.HandlerFor(c.registry, promhttp.HandlerOpts{})))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })
	mux.HandleFunc("GET /readyz", c.serveReady)
}

// serve runs the servers until they are stopped. It calls failed if one ends by itself.
func (s *servers) serve(failed func(error)) (wait func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var looking sync.WaitGroup
	looking.Go(func() { s.look(ctx) })
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.grpc.Serve(s.grpcListener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			failed(fmt.Errorf("serving gRPC: %w", err))
		}
	})
	serveHTTP := func(server *http.Server, on net.Listener) {
		if err := server.Serve(on); err != nil && !errors.Is(err, http.ErrServerClosed) {
			failed(fmt.Errorf("serving HTTP: %w", err))
		}
	}
	serving.Go(func() { serveHTTP(s.http, s.httpListener) })
	if s.probes != nil {
		serving.Go(func() { serveHTTP(s.probes, s.probesListener) })
	}
	if s.admin != nil {
		s.admin.start()
		serving.Go(func() { serveHTTP(s.admin.server, s.admin.listener) })
	}
	return func() { serving.Wait(); cancel(); looking.Wait() }
}

// stop waits a bounded time for open calls to end.
func (s *servers) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.grpc.GracefulStop()
	}()
	if err := s.http.Shutdown(ctx); err != nil {
		s.http.Close()
	}
	if s.probes != nil {
		s.probes.Close() // probes see the end of a stop, not of a process
	}
	if s.admin != nil {
		s.admin.stop()
	}
	select {
	case <-drained:
	case <-ctx.Done():
		s.grpc.Stop()
		<-drained
	}
}

// close closes servers that never served.
func (s *servers) close() {
	if s.grpc != nil {
		s.grpc.Stop()
	}
	s.closeTLS()
	s.grpcListener.Close()
	s.httpListener.Close()
	if s.probesListener != nil {
		s.probesListener.Close()
	}
	if s.admin != nil {
		s.admin.listener.Close()
	}
}

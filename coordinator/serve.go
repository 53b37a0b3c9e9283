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
	"syscall"
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
	headerTimeout  = 10 * time.Second // for headers, and again for the body
	answerTimeout  = 2 * time.Minute  // for the client to read a response
	idleTimeout    = 2 * time.Minute  // between two requests on a connection
	drainTimeout   = 3 * time.Second  // for open calls at the stop
	maxHeaderBytes = 64 << 10
)

// servers holds the gRPC and HTTP servers with their listeners.
type servers struct {
	grpc           *grpc.Server
	grpcListener   net.Listener
	health         *health.Server
	http           *http.Server
	httpListener   net.Listener
	watched        []*watchedListener // of grpcListener and httpListener
	probes         *http.Server       // nil without probes.address
	probesListener net.Listener
	admin          *admin // nil without admin.address
	calls          *calls
	guard          *guard.Guard
	bounds         *bounds
	refusals       *planeRefusals
	routes         *routes
	queries        *api.Service
}

// listenAt binds the address of a field of the configuration. Its error names the field, and says what to do if the
// address is in use.
func listenAt(field, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: %w: stop the process that listens there, or choose another address", field, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return listener, nil
}

// listen binds the addresses. It comes before the rest of the start, since an address may be in use. It serves
// nothing.
func listen(c *configv1.Config, log zerolog.Logger, counters *calls, g *guard.Guard, b *bounds) (*servers, error) {
	s := &servers{health: health.NewServer(), calls: counters, guard: g, bounds: b}
	var err error
	if s.grpcListener, err = listenAt("grpc.address", c.GetGrpc().GetAddress()); err != nil {
		return nil, err
	}
	if s.httpListener, err = listenAt("http.address", c.GetHttp().GetAddress()); err != nil {
		s.grpcListener.Close()
		return nil, err
	}
	if address := c.GetProbes().GetAddress(); address != "" {
		if s.probesListener, err = listenAt("probes.address", address); err != nil {
			s.close()
			return nil, err
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

// secure makes the servers, with TLS according to the configuration.
func (s *servers) secure(c *configv1.Config, log zerolog.Logger) error {
	grpcListener, err := s.watch("grpc", s.grpcListener, c.GetLimits(), c.GetGrpc(), "h2")
	if err != nil {
		return err
	}
	httpListener, err := s.watch("http", s.httpListener, c.GetLimits(), c.GetHttp())
	if err != nil {
		return err
	}
	s.calls.unserved.relay = c.GetRelay() != nil
	options := append(append(s.calls.unserved.options(), hds.ServerOptions(hds.Options{
		MaxMessageBytes: int(c.GetLimits().GetMaxMessageBytes()), MoveAfter: limit.SoftAge(c.GetGrpc().GetMaxConnectionAge().AsDuration()),
	})...), grpc.MaxConcurrentStreams(c.GetLimits().GetMaxStreamsPerConnection()), grpc.MaxHeaderListSize(maxHeaderBytes))
	creds := insecure.NewCredentials()
	if s.grpcListener = grpcListener; grpcListener.tls != nil {
		creds = credentials.NewTLS(grpcListener.tls.Config())
	}
	creds = newHandshakes(creds, grpcListener.tls != nil, log, s.bounds.registerer)
	options = append(append(options, s.bounds.bytes.ServerOptions(creds)...), grpc.ChainUnaryInterceptor(api.Delivered(inflight.After, inflight.End)))
	options = append(append(options, s.calls.options()...), s.guard.ServerOptions(mutual(c.GetGrpc()))...)
	options = append(options, s.bounds.requests.options()...)
	options = append(options, grpc.ChainStreamInterceptor(s.bounds.streams.intercept)) // after the guard, which knows the caller
	s.grpc = grpc.NewServer(options...)
	newHTTP := func() *http.Server {
		return &http.Server{
			ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ConnContext: inContext,
			ErrorLog: stdlog.New(errorLog{log}, "", 0), DisableGeneralOptionsHandler: true, // OPTIONS * is like any other request
		}
	}
	if s.http = newHTTP(); s.probesListener != nil {
		s.probes, s.probesListener = newHTTP(), limit.Listen(s.probesListener, s.calls.listenerOptions(c.GetLimits()))
	}
	if s.admin != nil {
		s.admin.server, s.admin.listener = newHTTP(), limit.Listen(s.admin.listener, s.calls.listenerOptions(c.GetLimits()))
	}
	if s.httpListener = httpListener; httpListener.tls != nil {
		s.httpListener = tls.NewListener(httpListener, httpListener.tls.Config())
	}
	return nil
}

// watch returns a listener whose connections and certificates the servers watch.
func (s *servers) watch(name string, listener net.Listener, limits *configv1.Limits, conf *configv1.Listener, protocols ...string) (*watchedListener, error) {
	w, err := s.calls.watch(name, listener, limits, conf, protocols...)
	s.watched = append(s.watched, w)
	return w, err
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
	queries := c.bounded(api.NewService(c.replicas.backend(c.query)))
	queries.Register(decoded)
	c.servers.queries = queries
	orders := &control{
		core: c.core, store: c.store, feed: c.feed, hub: c.hub, replicas: c.replicas, backups: newBackups(c.store, c.core.done, c.registry, c.log),
	}
	c.replicas.serve(orders)
	operators := api.NewControl(orders)
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
	mux.Handle("/v1/", counted("/v1/", shrinkBuffers(operators.Mark(rest))))
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
	c.servers.http.Handler = limitTime(closeOld(drainRefused(c.guarded(c.servers.guard.Handler(mutual(c.started.GetHttp()), mux)))))
	if c.servers.probes != nil {
		probes := &routes{ServeMux: http.NewServeMux()}
		c.serveProbes(probes)
		c.servers.probes.Handler = limitTime(drainRefused(probes.restrict(c.guarded(probes))))
	}
	if a := c.servers.admin; a != nil {
		a.server.Handler = limitTime(drainRefused(c.guarded(c.servers.guard.Handler(false, a.handler()))))
		c.core.onStep = a.observeStep
	}
	return nil
}

// servePage registers the page for browsers.
func (c *Coordinator) servePage(mux *routes) error {
	files, err := page.Handler()
	for _, path := range page.Paths() {
		if path == "/" {
			path = "/{$}" // no path below
		}
		mux.Handle("GET "+path, c.servers.calls.counted("page", files))
	}
	return err
}

// serveProbes registers the metrics and the health of hdsd itself.
func (c *Coordinator) serveProbes(mux *routes) {
	counted := c.servers.calls.counted
	mux.Handle("GET /metrics", counted("/metrics", promhttp.HandlerFor(c.registry, promhttp.HandlerOpts{})))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })
	mux.HandleFunc("GET /readyz", c.serveReady)
}

// serve runs the servers until stop. It calls failed when a server ends by itself.
func (s *servers) serve(failed func(error)) (wait func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { s.watchListeners(ctx) })
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.grpc.Serve(s.grpcListener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			failed(fmt.Errorf("serving gRPC: %w", err))
		}
	})
	serveHTTP := func(server *http.Server, listener net.Listener) {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
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
	return func() { serving.Wait(); cancel(); watching.Wait() }
}

// stop stops the servers. It waits for open calls for at most drainTimeout.
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
		s.probes.Close() // probes work until the end of a stop
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

// close closes servers that have not served.
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

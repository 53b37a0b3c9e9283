package demo

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/demo/envoy"
)

// coordinator is an hdsd: one alone, or a replica.
type coordinator struct {
	id         string
	part       string // of a replica, to follow what is done there
	grpc, http string // addresses
	start      func() (*envoy.Child, error)
	process    *envoy.Child
	connection *grpc.ClientConn
	query      hdsdv1.QueryClient
	control    hdsdv1.ControlClient
}

// addCoordinator writes the configuration of the n-th coordinator, with further lines, and prepares the
// connection to it. serve starts it.
func (s *stage) addCoordinator(id string, n int, more string) (c *coordinator, err error) {
	config := filepath.Join(s.dir, id+".yaml")
	c = &coordinator{id: id, start: func() (*envoy.Child, error) { return s.start("serve", "-c", config) }}
	if c.grpc, err = s.address(fmt.Sprintf("127.0.0.1:%d", 18000+n)); err != nil {
		return nil, err
	}
	if c.http, err = s.address(fmt.Sprintf("127.0.0.1:%d", 18080+n)); err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, []byte(configuration(id, c.grpc, c.http)+more), 0o600); err != nil {
		return nil, err
	}
	c.connection, err = grpc.NewClient(c.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	c.query, c.control = hdsdv1.NewQueryClient(c.connection), hdsdv1.NewControlClient(c.connection)
	s.coordinators = append(s.coordinators, c)
	s.ends = append(s.ends, func() {
		if c.process != nil {
			_ = c.process.Stop() // it is gone in any case
		}
	}, func() { c.connection.Close() })
	return c, nil
}

// start starts an hdsd with arguments.
func (s *stage) start(args ...string) (*envoy.Child, error) {
	return envoy.StartChild(exec.Command(s.options.HDSD, args...), func() {})
}

// serve starts a coordinator and waits until it is ready.
func serve(ctx context.Context, c *coordinator) error {
	if err := launch(c); err != nil {
		return err
	}
	return awaitReady(ctx, c)
}

func launch(c *coordinator) (err error) {
	c.process, err = c.start()
	return err
}

func awaitReady(ctx context.Context, c *coordinator) error {
	if !await(ctx, func() bool { return !c.process.Alive() || ready(ctx, c.http) }) || !c.process.Alive() {
		return failed(ctx, "%s is not ready:\n%s\n", c.id, c.process.Logs())
	}
	return nil
}

func ready(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

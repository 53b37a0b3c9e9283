package coordinator

import (
	"context"
	"fmt"
	"math"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"hdsd/eds/files"
	"hdsd/internal/wire"
)

// filesBuffer limits the bytes of assignments that wait for the files.
const filesBuffer = 1 << 20

// fileWriter writes assignments to files. It subscribes like a data plane, over a connection in memory, which
// no limit of addresses concerns.
type fileWriter struct {
	keeper   *files.Keeper
	listener *bufconn.Listener
	server   *grpc.Server
	conn     *grpc.ClientConn

	cancel  context.CancelFunc
	serving sync.WaitGroup
	keeping sync.WaitGroup
}

// openFiles opens the folder of data_planes.eds_directory. It returns nil without one.
func (c *Coordinator) openFiles() (*fileWriter, error) {
	folder := c.started.GetDataPlanes().GetEdsDirectory()
	if folder == "" {
		return nil, nil //nolint:nilnil // nil is a fileWriter that does nothing
	}
	f := &fileWriter{listener: bufconn.Listen(filesBuffer), server: grpc.NewServer(wire.ServerOption())}
	c.eds.Register(f.server)
	var err error
	if f.conn, err = grpc.NewClient("passthrough:///files",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return f.listener.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
	); err != nil {
		return nil, fmt.Errorf("data_planes.eds_directory: %w", err)
	}
	if f.keeper, err = files.Open(files.Options{
		Folder: folder, Identifier: c.started.GetNodeId(), Server: f.conn, Log: c.log, Metrics: c.registry,
	}); err != nil {
		f.conn.Close()
		return nil, fmt.Errorf("data_planes.eds_directory: %w", err)
	}
	return f, nil
}

// run writes files until stop.
func (f *fileWriter) run(ctx context.Context) {
	if f == nil {
		return
	}
	ctx, f.cancel = context.WithCancel(ctx)
	f.serving.Go(func() { _ = f.server.Serve(f.listener) }) // until stop
	f.keeping.Go(func() { f.keeper.Run(ctx) })
}

// stop ends run, if it was called, and closes the connection.
func (f *fileWriter) stop() {
	if f == nil {
		return
	}
	if f.cancel != nil {
		f.cancel()
		f.keeping.Wait()
	}
	f.conn.Close()
	f.server.Stop()
	f.serving.Wait()
}

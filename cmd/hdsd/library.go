package main

import (
	"fmt"
	"io"
	stdlog "log"
	"os"
	"strings"
	"sync/atomic"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/grpclog"
)

const maxLibraryMessage = 1024 // bytes: it may contain text of a peer

// libraryLog is the log for libraries, nil while the process has none. In commands
// without a log, the same problems show as errors.
var libraryLog atomic.Pointer[zerolog.Logger]

// gRPC accepts a logger only before its first use. A user who sets the variable gets
// all of gRPC's own log.
func init() {
	if os.Getenv("GRPC_GO_LOG_SEVERITY_LEVEL") == "" {
		grpclog.SetLoggerV2(grpcLog{grpclog.NewLoggerV2(io.Discard, io.Discard, os.Stderr)})
	}
}

// logLibraries directs the logs of libraries to a log.
func logLibraries(log zerolog.Logger) {
	libraryLog.Store(&log)
	stdlog.SetFlags(0)
	stdlog.SetOutput(goLog{})
}

func libraryTrouble(library, message string) {
	if log := libraryLog.Load(); log != nil {
		message = strings.TrimSpace(message[:min(len(message), maxLibraryMessage)])
		log.Warn().Str("event", "library_trouble").Str("library", library).Msg(message)
	}
}

// grpcLog logs the errors of gRPC and of the REST gateway as trouble with a peer. The
// embedded logger drops the rest, except fatal errors.
type grpcLog struct{ grpclog.LoggerV2 }

func (grpcLog) Error(args ...any)   { libraryTrouble("grpc", fmt.Sprint(args...)) }
func (grpcLog) Errorln(args ...any) { libraryTrouble("grpc", fmt.Sprintln(args...)) }
func (grpcLog) Errorf(format string, args ...any) {
	libraryTrouble("grpc", fmt.Sprintf(format, args...))
}

// goLog takes the output of package log.
type goLog struct{}

// Write implements io.Writer for one message.
func (goLog) Write(message []byte) (int, error) {
	libraryTrouble("go", string(message))
	return len(message), nil
}

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

const maxLibraryMessage = 1024 // bytes: there may be words of a peer in it

// libraryLog is where libraries complain, nil while the process has no log.
// What they complain of reaches whoever runs another command as an error.
var libraryLog atomic.Pointer[zerolog.Logger]

// gRPC takes a logger before anything else uses it. Who sets the variable wants
// all that gRPC has to say, as it says it.
func init() {
	if os.Getenv("GRPC_GO_LOG_SEVERITY_LEVEL") == "" {
		grpclog.SetLoggerV2(grpcLog{grpclog.NewLoggerV2(io.Discard, io.Discard, os.Stderr)})
	}
}

// logLibraries directs what libraries write by themselves to a log.
func logLibraries(to zerolog.Logger) {
	libraryLog.Store(&to)
	stdlog.SetFlags(0)
	stdlog.SetOutput(goLog{})
}

func libraryTrouble(library, message string) {
	if log := libraryLog.Load(); log != nil {
		message = strings.TrimSpace(message[:min(len(message), maxLibraryMessage)])
		log.Warn().Str("event", "library_trouble").Str("library", library).Msg(message)
	}
}

// grpcLog takes the errors of gRPC, and of the REST gateway, for trouble with a
// peer. The logger in it leaves out the rest, except why it ends the process.
type grpcLog struct{ grpclog.LoggerV2 }

func (grpcLog) Error(args ...any)   { libraryTrouble("grpc", fmt.Sprint(args...)) }
func (grpcLog) Errorln(args ...any) { libraryTrouble("grpc", fmt.Sprintln(args...)) }
func (grpcLog) Errorf(format string, args ...any) {
	libraryTrouble("grpc", fmt.Sprintf(format, args...))
}

// goLog takes what is written with package log.
type goLog struct{}

// Write implements io.Writer for one message.
func (goLog) Write(message []byte) (int, error) {
	libraryTrouble("go", string(message))
	return len(message), nil
}

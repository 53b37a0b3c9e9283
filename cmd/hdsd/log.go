package main

import (
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"hdsd/internal/printable"
	"hdsd/internal/table"
)

// logFlags are the flags of the log.
type logFlags struct{ level, format string }

func (f *logFlags) addTo(command *cobra.Command) {
	command.Flags().StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
	command.Flags().StringVar(&f.format, "log-format", "json", "json or text")
	_ = command.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
	_ = command.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"json", "text"}, cobra.ShellCompDirectiveNoFileComp))
}

func init() {
	zerolog.TimeFieldFormat, zerolog.DurationFieldFormat = time.RFC3339Nano, zerolog.DurationFormatString
}

// logger makes the logger of the process, for libraries, too. It bounds the lines of events that
// peers can repeat.
func (f *logFlags) logger(w io.Writer) (zerolog.Logger, error) {
	level, ok := map[string]zerolog.Level{
		"debug": zerolog.DebugLevel, "info": zerolog.InfoLevel, "warn": zerolog.WarnLevel, "error": zerolog.ErrorLevel,
	}[f.level]
	if !ok {
		return zerolog.Nop(), usageError{fmt.Errorf("--log-level %q: want debug, info, warn or error", f.level)}
	}
	switch f.format {
	case "json":
		w = escaping{w}
	case "text":
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: "15:04:05.000", NoColor: !table.IsTerminal(w), FormatMessage: messageText, FormatFieldValue: fieldText}
	default:
		return zerolog.Nop(), usageError{fmt.Errorf("--log-format %q: want json or text", f.format)}
	}
	log := zerolog.New(newLimiter(w, time.Now)).Level(level).With().Timestamp().Logger()
	logLibraries(log)
	return log, nil
}

// escaping writes lines of JSON with escapes for characters that control a terminal.
type escaping struct{ w io.Writer }

// Write implements io.Writer. It gets one line at a time.
func (e escaping) Write(line []byte) (int, error) {
	if _, err := e.w.Write(printable.JSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// messageText writes the message of a line for people.
func messageText(message any) string {
	if message == nil {
		return ""
	}
	return fieldText(message)
}

// fieldText writes a field, a string or bytes of JSON.
func fieldText(value any) string { return printable.Text(fmt.Sprintf("%s", value)) }

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/printable"
	"hdsd/internal/table"
)

// sheetLabel is the width of the labels of a sheet, in columns.
const sheetLabel = 13

// sheet is the facts about one thing, for people and for programs.
type sheet struct {
	text     strings.Builder
	object   []sheetField
	commands []string
}

type sheetField struct {
	name  string
	value json.RawMessage
}

// line adds a line. Its label may be empty. A long text continues in the next lines.
func (s *sheet) line(label, format string, args ...any) {
	for i, text := range table.Wrap(printable.Text(fmt.Sprintf(format, args...)), statusWidth-sheetLabel) {
		if i > 0 {
			label = ""
		}
		s.row(label, text)
	}
}

func (s *sheet) row(label, text string) {
	s.text.WriteString(label + strings.Repeat(" ", max(1, sheetLabel-len(label))) + text + "\n")
}

// lines adds a line for each text, the label before the first. Without texts, it adds empty.
func (s *sheet) lines(label, empty string, values []string) {
	if len(values) == 0 && empty != "" {
		s.line(label, "%s", empty)
	}
	for i, text := range values {
		if i > 0 {
			label = ""
		}
		s.line(label, "%s", text)
	}
}

// next adds a command to run next. It stays on one line, to be copied.
func (s *sheet) next(command string) { s.commands = append(s.commands, command) }

// addAll adds messages for programs, as a list.
func addAll[M proto.Message](s *sheet, name string, messages []M) error {
	list := make([]json.RawMessage, 0, len(messages))
	for _, m := range messages {
		text, err := compact(m)
		if err != nil {
			return err
		}
		list = append(list, text)
	}
	return s.addValue(name, list)
}

// addOne adds a message for programs.
func addOne(s *sheet, name string, m proto.Message) error {
	text, err := compact(m)
	if err != nil {
		return err
	}
	return s.addValue(name, text)
}

func (s *sheet) addValue(name string, value any) error {
	text, err := json.Marshal(value)
	s.object = append(s.object, sheetField{name, text})
	return err
}

// compact writes a message as JSON on one line. protojson varies its white space on purpose;
// scripts want it stable.
func compact(m proto.Message) (json.RawMessage, error) {
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	err = json.Compact(&line, text)
	return line.Bytes(), err
}

// print shows the sheet in a format: table or json.
func (s *sheet) print(w io.Writer, format string) error {
	if format == "json" {
		if err := s.addValue("commands", s.commands); err != nil {
			return err
		}
		var b bytes.Buffer
		for i, f := range s.object {
			separator := byte(',')
			if i == 0 {
				separator = '{'
			}
			b.WriteByte(separator)
			b.WriteString(strconv.Quote(f.name) + ":")
			b.Write(f.value)
		}
		b.WriteString("}\n")
		_, err := w.Write(printable.JSON(b.Bytes()))
		return err
	}
	for i, command := range s.commands {
		label := "next"
		if i > 0 {
			label = ""
		}
		s.row(label, printable.Text(command))
	}
	_, err := io.WriteString(w, s.text.String())
	return err
}

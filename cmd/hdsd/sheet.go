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

// sheet is what is known about one thing, for people and for programs.
type sheet struct {
	text     strings.Builder
	object   []sheetField
	commands []string
}

type sheetField struct {
	name  string
	value json.RawMessage
}

// line adds a line. Its label may be empty. What is too long goes on in the next ones.
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

// lines adds a line for each text, the label before the first. Without any, it says so.
func (s *sheet) lines(label, none string, all []string) {
	if len(all) == 0 && none != "" {
		s.line(label, "%s", none)
	}
	for i, text := range all {
		if i > 0 {
			label = ""
		}
		s.line(label, "%s", text)
	}
}

// next adds a command to go on with. It stays on one line, to be copied.
func (s *sheet) next(command string) { s.commands = append(s.commands, command) }

// addAll adds messages for programs, as a list.
func addAll[M proto.Message](s *sheet, name string, all []M) error {
	list := make([]json.RawMessage, 0, len(all))
	for _, m := range all {
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
func (s *sheet) print(to io.Writer, format string) error {
	if format == "json" {
		if err := s.addValue("commands", s.commands); err != nil {
			return err
		}
		var out bytes.Buffer
		for i, f := range s.object {
			separator := byte(',')
			if i == 0 {
				separator = '{'
			}
			out.WriteByte(separator)
			out.WriteString(strconv.Quote(f.name) + ":")
			out.Write(f.value)
		}
		out.WriteString("}\n")
		_, err := to.Write(printable.JSON(out.Bytes()))
		return err
	}
	for i, command := range s.commands {
		label := "next"
		if i > 0 {
			label = ""
		}
		s.row(label, printable.Text(command))
	}
	_, err := io.WriteString(to, s.text.String())
	return err
}

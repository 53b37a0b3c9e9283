package check

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// field is a header field; the name is in lower case.
type field struct{ name, value string }

// editHeaders removes headers, then adds some, in Envoy's order.
func editHeaders(fields []field, remove []string, add []*corev3.HeaderValueOption) ([]field, error) {
	for _, name := range remove {
		name = strings.ToLower(name)
		if err := editable(name); err != nil {
			return nil, fmt.Errorf("request_headers_to_remove: %w", err)
		}
		fields = slices.DeleteFunc(fields, func(f field) bool { return f.name == name })
	}
	for _, option := range add {
		var err error
		if fields, err = addHeader(fields, option); err != nil {
			return nil, fmt.Errorf("request_headers_to_add: %w", err)
		}
	}
	return fields, nil
}

func addHeader(fields []field, option *corev3.HeaderValueOption) ([]field, error) {
	f := field{name: strings.ToLower(option.GetHeader().GetKey())}
	if err := editable(f.name); err != nil {
		return nil, err
	}
	raw := option.GetHeader().GetValue()
	if raw == "" {
		raw = string(option.GetHeader().GetRawValue())
	}
	var err error
	if f.value, err = literal(raw); err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	if f.value == "" && !option.GetKeepEmptyValue() {
		return fields, nil
	}
	action := option.GetAppendAction()
	if a := option.GetAppend(); a != nil && !a.GetValue() { //nolint:staticcheck // Envoy still applies it
		action = corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
	}
	index := slices.IndexFunc(fields, func(g field) bool { return g.name == f.name })
	switch action {
	case corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD:
		if index >= 0 && f.name == "user-agent" { // a list field in Envoy
			fields[index].value += "," + f.value
			return fields, nil
		}
		return append(fields, f), nil
	case corev3.HeaderValueOption_ADD_IF_ABSENT:
		if index >= 0 {
			return fields, nil
		}
		return append(fields, f), nil
	case corev3.HeaderValueOption_OVERWRITE_IF_EXISTS:
		if index < 0 {
			return fields, nil
		}
	case corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD:
	default:
		return nil, fmt.Errorf("%s: append_action %s is not supported", f.name, action)
	}
	fields = slices.DeleteFunc(fields, func(g field) bool { return g.name == f.name })
	return append(fields, f), nil
}

// editable returns an error if a header must not be changed.
func editable(name string) error {
	if name == "" || name == "host" || !isToken(name) {
		return fmt.Errorf("header %q cannot be changed here; the host is set by host or health_check_config.hostname", name)
	}
	return nil
}

func isToken(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	}) < 0
}

// literal resolves a header value in which "%" starts a command.
func literal(s string) (string, error) {
	if strings.ContainsAny(s, "\r\n\x00") {
		return "", fmt.Errorf("value %q has a line break or a zero byte", s)
	}
	parts := strings.Split(s, "%%")
	for _, part := range parts {
		if strings.Contains(part, "%") {
			return "", fmt.Errorf("value %q: commands between %% are not supported; write %%%% for a percent sign", s)
		}
	}
	return strings.Join(parts, "%"), nil
}

package config

import (
	"path/filepath"
	"strconv"
	"strings"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/yamlpb"
)

// Config is a whole configuration.
type Config = configv1.Config

// Problem is a fault in a configuration, and how to fix it.
type Problem = yamlpb.Problem

// maxBytes is the size limit of a configuration file.
const maxBytes = 16 << 20

// Load reads a configuration file, makes the changes, and checks the result. If a problem is more than a
// warning, it returns no Config.
func Load(path string, changes ...func(*Config)) (*Config, []Problem) {
	cfg, problems := Examine(path, changes...)
	for _, problem := range problems {
		if !problem.Warning {
			return nil, problems
		}
	}
	return cfg, problems
}

// Examine is Load for callers that look for further problems. If there are problems, it
// returns the valid rest of the configuration, or nil if there is none.
func Examine(path string, changes ...func(*Config)) (*Config, []Problem) {
	data, err := yamlpb.ReadFile(path, maxBytes)
	if err != nil {
		return nil, []Problem{{File: path, Message: err.Error()}}
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, []Problem{{File: path, Message: "has no absolute path: " + err.Error()}}
	}
	return parse(path, data, folder, changes...)
}

func parse(path string, data []byte, folder string, changes ...func(*Config)) (*Config, []Problem) {
	root, problems := yamlpb.ParseOwn(path, data)
	if len(problems) > 0 {
		return nil, problems
	}
	cfg := &Config{}
	c := &checks{root: root, problems: root.Decode(cfg)}
	for _, problem := range c.problems {
		c.spoiled = append(c.spoiled, problem.Field)
	}
	for _, change := range changes {
		change(cfg)
	}
	resolvePaths(cfg, folder)
	c.config(cfg)
	yamlpb.SortProblems(c.problems)
	for _, problem := range c.problems {
		if !problem.Warning {
			leaveOut(cfg, problem.Field)
		}
	}
	if err := fillDefaults(cfg, folder); err != nil {
		return nil, append(c.problems, root.Problem("node_id", "is needed, since this machine's name cannot be read: %s", err))
	}
	return cfg, c.problems
}

// leaveOut removes a faulty field from a configuration: its top-level part, or the
// checks of default health checks. It removes nothing if sources and checkers are
// readable all the same.
func leaveOut(cfg *Config, field string) {
	part, rest, _ := strings.Cut(field, "[")
	part, _, _ = strings.Cut(part, ".")
	switch part {
	case "sources", "checkers":
	case "default_health_checks":
		index, err := strconv.Atoi(rest[:max(0, strings.IndexByte(rest, ']'))])
		if err == nil && index < len(cfg.GetDefaultHealthChecks()) {
			cfg.DefaultHealthChecks[index].HealthChecks = nil
		}
	default:
		m := cfg.ProtoReflect()
		if fd := m.Descriptor().Fields().ByTextName(part); fd != nil {
			m.Clear(fd)
		}
	}
}

// checks collects the problems of a decoded configuration.
type checks struct {
	root     yamlpb.Node
	problems []Problem
	spoiled  []string // undecodable fields, which get no further problems
}

func (c *checks) add(field, format string, args ...any) {
	for _, spoiled := range c.spoiled {
		if isWithin(field, spoiled) || isWithin(spoiled, field) {
			return
		}
	}
	c.problems = append(c.problems, c.root.Problem(field, format, args...))
}

func (c *checks) warn(field, format string, args ...any) {
	before := len(c.problems)
	c.add(field, format, args...)
	if len(c.problems) > before {
		c.problems[before].Warning = true
	}
}

// isWithin reports whether a field is outer or inside it.
func isWithin(field, outer string) bool {
	rest, ok := strings.CutPrefix(field, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

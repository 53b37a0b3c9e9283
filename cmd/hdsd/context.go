package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"hdsd/internal/suggest"
	"hdsd/internal/table"
)

// contexts is the content of the file of contexts.
type contexts struct {
	Current  string        `yaml:"current"`
	Contexts []fileContext `yaml:"contexts"`
}

// fileContext is the address and the credentials of one coordinator.
type fileContext struct {
	Name          string `yaml:"name" json:"name"`
	Server        string `yaml:"server" json:"server"`
	TLSCA         string `yaml:"tls_ca" json:"tlsCa"`
	TLSCert       string `yaml:"tls_cert" json:"tlsCert"`
	TLSKey        string `yaml:"tls_key" json:"tlsKey"`
	TLSServerName string `yaml:"tls_server_name" json:"tlsServerName"`
	TokenFile     string `yaml:"token_file" json:"tokenFile"`
}

// contextFile returns the path of the contexts: hdsd/config.yaml in XDG_CONFIG_HOME, else in
// ~/.config.
func contextFile() (string, error) {
	home := os.Getenv("XDG_CONFIG_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("where contexts are is not known: set XDG_CONFIG_HOME or HOME (%w)", err)
		}
		home = filepath.Join(user, ".config")
	}
	return filepath.Join(home, "hdsd", "config.yaml"), nil
}

// readContexts reads the file. Without one there are none.
func readContexts() (cs contexts, file string, err error) {
	if file, err = contextFile(); err != nil {
		return cs, "", err
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return cs, file, nil
	}
	if err != nil {
		return cs, file, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&cs); err != nil && !errors.Is(err, io.EOF) {
		return cs, file, fmt.Errorf("%s: %w", file, err)
	}
	for i := range cs.Contexts {
		if err := cs.Contexts[i].complete(filepath.Dir(file)); err != nil {
			return cs, file, fmt.Errorf("%s: %w", file, err)
		}
	}
	return cs, file, nil
}

// complete checks a context, and makes its paths absolute.
func (c *fileContext) complete(folder string) error {
	if c.Name == "" || c.Server == "" {
		return fmt.Errorf("context %q of server %q: give both, name and server", c.Name, c.Server)
	}
	for _, path := range []*string{&c.TLSCA, &c.TLSCert, &c.TLSKey, &c.TokenFile} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(folder, *path)
		}
	}
	return nil
}

func (cs *contexts) find(name string) (*fileContext, error) {
	var names []string
	for i := range cs.Contexts {
		if cs.Contexts[i].Name == name {
			return &cs.Contexts[i], nil
		}
		names = append(names, cs.Contexts[i].Name)
	}
	return nil, fmt.Errorf("there is no context %q%s ('hdsd context list' lists all)", name, suggest.DidYouMean(name, names))
}

// useContext fills the flags of a command that asks a coordinator from the current context. It
// counts as a whole, only where neither --server nor HDSD_SERVER names a coordinator: its token
// must not go elsewhere. Flags and HDSD_TLS_CA and its like win over its files.
func useContext(command *cobra.Command) error {
	server := command.Flags().Lookup("server")
	if server == nil || command.Flags().Lookup("token-file") == nil || server.Changed || os.Getenv("HDSD_SERVER") != "" {
		return nil
	}
	cs, file, err := readContexts()
	if err != nil || cs.Current == "" {
		return err
	}
	c, err := cs.find(cs.Current)
	if err != nil {
		return fmt.Errorf("%s: current: %w", file, err)
	}
	for flag, value := range map[string]string{
		"server": c.Server, "tls-ca": c.TLSCA, "tls-cert": c.TLSCert, "tls-key": c.TLSKey, "tls-server-name": c.TLSServerName, "token-file": c.TokenFile,
	} {
		if f := command.Flags().Lookup(flag); value != "" && !isGiven(f) {
			if err := f.Value.Set(value); err != nil {
				return err
			}
		}
	}
	return nil
}

// isGiven reports whether the command line or the environment has a flag's value.
func isGiven(f *pflag.Flag) bool {
	if f.Name == "token-file" {
		return f.Changed || os.Getenv(tokenVariable) != ""
	}
	return f.Changed || f.Name != "server" && f.Value.String() != ""
}

func newContext() *cobra.Command {
	command := &cobra.Command{
		Use:   "context list|use",
		Short: "List the coordinators of your configuration, and choose one",
		Long: `context is about the coordinators in ~/.config/hdsd/config.yaml (in
XDG_CONFIG_HOME, if that is set):

  current: prod
  contexts:
  - name: prod
    server: hdsd.example.com:18000
    tls_ca: ca.pem              # relative to the file's folder
    tls_cert: ann.pem
    tls_key: ann.key
    tls_server_name: hdsd       # if the certificate has another name
    token_file: token
  - name: here
    server: 127.0.0.1:18000

Commands ask the current one, unless --server or HDSD_SERVER names another.
Flags, HDSD_TLS_CA and its like, and HDSD_TOKEN win over its files.`,
		Args: knownCommand,
		RunE: func(*cobra.Command, []string) error {
			return usageError{errors.New("name what to do: list or use")}
		},
	}
	command.AddCommand(newContextList(), newContextUse())
	return command
}

func newContextList() *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "list",
		Short: "List the contexts",
		Long: `list shows the coordinators in the configuration of your user, and which of
them commands ask.`,
		Example: "  hdsd context list",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			cs, file, err := readContexts()
			if err != nil {
				return err
			}
			if len(cs.Contexts) == 0 {
				say(command.ErrOrStderr(), "hdsd: no contexts: %s has none\n", file)
			}
			switch output {
			case "json":
				return printContexts(command.OutOrStdout(), &cs)
			case "table":
				return tableContexts(command.OutOrStdout(), &cs)
			}
			return usageError{fmt.Errorf("--output %q: want table or json", output)}
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "table", "table or json (an object a line)")
	completeWords(command, "output", "table", "json")
	return command
}

func printContexts(w io.Writer, cs *contexts) error {
	for _, c := range cs.Contexts {
		line, err := json.Marshal(struct {
			fileContext
			Current bool `json:"current"`
		}{c, c.Name == cs.Current})
		if err == nil {
			_, err = w.Write(append(line, '\n'))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func tableContexts(w io.Writer, cs *contexts) error {
	screen, err := table.ScreenOf(w, "never")
	if err != nil {
		return err
	}
	t := table.New(w, screen, []string{"current", "name", "server", "tls", "token"}, nil)
	for _, c := range cs.Contexts {
		cells := []string{"", c.Name, c.Server, "", ""}
		if c.Name == cs.Current {
			cells[0] = "*"
		}
		if c.TLSCA != "" {
			cells[3] = "yes"
		}
		if c.TokenFile != "" {
			cells[4] = "yes"
		}
		if err := t.Row(cells); err != nil {
			return err
		}
	}
	return t.Close()
}

func newContextUse() *cobra.Command {
	return &cobra.Command{
		Use:   "use NAME",
		Short: "Ask this coordinator from now on",
		Long: `use makes a context the current one: commands ask its coordinator from now on,
unless --server or HDSD_SERVER names another.`,
		Example: "  hdsd context use prod",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one context, as 'hdsd context list' shows it")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			cs, file, err := readContexts()
			if err != nil {
				return err
			}
			chosen, err := cs.find(args[0])
			if err != nil {
				return err
			}
			if err := setCurrent(file, chosen.Name); err != nil {
				return err
			}
			say(command.OutOrStdout(), "commands ask %s at %s now\n", chosen.Name, chosen.Server)
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, begun string) (names []string, _ cobra.ShellCompDirective) {
			cs, _, _ := readContexts() // on an error there is nothing to offer
			for _, c := range cs.Contexts {
				if len(args) == 0 && strings.HasPrefix(c.Name, begun) {
					names = append(names, c.Name+"\t"+c.Server)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// setCurrent changes the current context in the file, and leaves the rest, comments included.
func setCurrent(file, name string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	root := document.Content[0]
	index := slices.IndexFunc(root.Content, func(n *yaml.Node) bool { return n.Value == "current" })
	if index < 0 {
		root.Content = append([]*yaml.Node{{Kind: yaml.ScalarNode, Value: "current"}, {}}, root.Content...)
		index = 0
	}
	root.Content[index+1] = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return err
	}
	staged := file + ".new"
	if err := os.WriteFile(staged, b.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(staged, file)
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

var _ = annotations.E_Http // registers google/api/annotations.proto

// plugin is a protoc plugin, its options and the folder it writes to.
type plugin struct{ name, options, folder string }

var plugins = []plugin{
	{"protoc-gen-go", "module=hdsd/gen", "gen"},
	{"protoc-gen-go-grpc", "module=hdsd/gen", "gen"},
	{"protoc-gen-grpc-gateway", "module=hdsd/gen", "gen"},
	{"protoc-gen-openapi", "base=../proto/hdsd/v1/openapi.yaml,dir=hdsd/v1", "gen"},
}

func main() {
	root := os.Args[1]
	out := root
	if len(os.Args) > 2 {
		out = os.Args[2]
	}
	if err := run(root, out); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

// run generates everything from what is below root, the top of the repository,
// to what is below out.
func run(root, out string) error {
	protos := filepath.Join(root, "proto")
	files, err := filepath.Glob(filepath.Join(protos, "hdsd", "*", "*.proto"))
	if err != nil {
		return err
	}
	deeper, err := filepath.Glob(filepath.Join(protos, "hdsd", "*", "*", "*.proto"))
	if err != nil {
		return err
	}
	var names []string
	for _, file := range append(files, deeper...) {
		name, err := filepath.Rel(protos, file)
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	request, err := compile(protos, names)
	if err != nil {
		return err
	}
	for _, p := range plugins {
		if err := generate(out, p, request); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return document(out, request)
}

// compile reads the named protos and gives the request that plugins take.
func compile(protos string, names []string) (*pluginpb.CodeGeneratorRequest, error) {
	registered := protocompile.ResolverFunc(func(path string) (protocompile.SearchResult, error) {
		file, err := protoregistry.GlobalFiles.FindFileByPath(path)
		if err != nil {
			return protocompile.SearchResult{}, err
		}
		return protocompile.SearchResult{Proto: protodesc.ToFileDescriptorProto(file)}, nil
	})
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(protocompile.CompositeResolver{
			&protocompile.SourceResolver{ImportPaths: []string{protos}}, registered,
		}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), names...)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: names}
	seen := map[string]bool{}
	for _, file := range files {
		request.ProtoFile = appendWithImports(request.ProtoFile, file, seen)
	}
	return request, nil
}

// appendWithImports appends file after everything it imports.
func appendWithImports(to []*descriptorpb.FileDescriptorProto, file protoreflect.FileDescriptor, seen map[string]bool) []*descriptorpb.FileDescriptorProto {
	if seen[file.Path()] {
		return to
	}
	seen[file.Path()] = true
	for i := range file.Imports().Len() {
		to = appendWithImports(to, file.Imports().Get(i).FileDescriptor, seen)
	}
	return append(to, protodesc.ToFileDescriptorProto(file))
}

// generate runs one plugin and writes the files it answers.
func generate(out string, p plugin, request *pluginpb.CodeGeneratorRequest) error {
	request.Parameter = proto.String(p.options)
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	command := exec.Command("go", "tool", p.name)
	command.Stdin, command.Stderr = bytes.NewReader(in), os.Stderr
	answer, err := command.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(answer, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", strings.TrimSpace(response.GetError()))
	}
	for _, file := range response.File {
		path := filepath.Join(out, p.folder, file.GetName())
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

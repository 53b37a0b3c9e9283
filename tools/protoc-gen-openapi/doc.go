// Command protoc-gen-openapi is a protoc plugin that writes the OpenAPI 3
// document of the services it is given: paths from the HTTP annotations,
// descriptions from the comments, shapes as proto3 JSON has them when default
// values are emitted. A stream of the server is served as server-sent events,
// whose names are the fields of its oneof.
//
// The option base names a YAML file with what the protos do not say: the
// title, the errors and what else is served over HTTP. The option dir is the
// folder of the Go package that the document is embedded in, and of its protos.
package main

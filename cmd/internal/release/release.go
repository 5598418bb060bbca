// Package release builds podd with the settings of a release.
//
// The file flags contains the flags of go build, in the format of the environment variable GOFLAGS.
// They make the binary smaller and builds faster. The Makefile uses them for tests too, so that
// packages are compiled once.
//   - The tag grpcnotrace excludes the traces of gRPC, and with them html/template.
//   - The tag nethttpomithttp2 excludes HTTP/2 from net/http. podd's own servers and clients use
//     HTTP/1.1. client-go and gRPC use HTTP/2 from golang.org/x/net.
//   - The tag http2legacy includes HTTP/2 in golang.org/x/net with Go 1.27 and later. Without this
//     tag, golang.org/x/net would use the implementation of net/http, which is excluded.
//   - The -gcflags disable inlining, except in most of the standard library. The binary is 2.6 MB
//     smaller, mainly because of smaller line tables, and decoding a manifest takes 7 % longer.
//     Inlining is also disabled in packages of the standard library that are large and do not limit
//     podd's speed: networking, TLS, archives, templates, profiles, encodings, logs, processes, regular
//     expressions and Go's comments, with which kong formats help texts. podd decodes manifests with
//     packages of Kubernetes. Inlining is enabled in OpenTelemetry: otherwise the package semconv, which
//     the trace API imports, would initialize 0.1 MB of unused variables at each start.
//     The -gcflags also omit debugging data, which the linker would discard, and which is a seventh
//     of the compile time.
package release

import (
	"cmp"
	"context"
	_ "embed"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

//go:embed flags
var flags string

// Flags returns the flags of go build for podd and its tools, in the format of GOFLAGS.
func Flags() string { return strings.TrimSpace(flags) }

// Command returns a command that builds podd for an architecture and writes it to file. arch is a value of
// GOARCH; "" means that of this process. The environment of the command is that of this process, except
// that cgo is disabled and that GOARCH and GOFLAGS are replaced. The working directory of the command
// must be in the module podd. linkerFlags are additional flags of go tool link, for example
// "-X main.version=1.0.0".
func Command(ctx context.Context, arch, file string, linkerFlags ...string) *exec.Cmd {
	arch = cmp.Or(arch, runtime.GOARCH)
	linker := strings.Join(append(archLinkerFlags(arch), linkerFlags...), " ")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", linker, "-o", file, "podd/cmd/podd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch, "GOFLAGS="+Flags())
	return build
}

// archLinkerFlags returns the flags of go tool link for an architecture. They omit the symbol table and
// debugging data. On amd64 they also align functions to 2 bytes instead of 32, which makes the binary
// 0.65 MB smaller. The linker still applies the larger alignment that a function in
// assembly requires.
func archLinkerFlags(arch string) []string {
	linkerFlags := []string{"-s", "-w"}
	if arch == "amd64" {
		linkerFlags = append(linkerFlags, "-funcalign=2")
	}
	return linkerFlags
}

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
//   - The -gcflags disable inlining, except in the standard library. The binary is 2.4 MB smaller,
//     mainly because of smaller line tables, and decoding a manifest takes 7 % longer. They also
//     omit debugging data, which the linker would discard, and which is a seventh of the compile
//     time.
package release

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"strings"
)

//go:embed flags
var flags string

// Command returns a command that builds podd and writes it to file. Its environment is that of this
// process, except that cgo is disabled and GOFLAGS is replaced. The working directory of the command
// must be in the module podd. linkerFlags are flags of go tool link, for example
// "-X main.version=1.0.0".
func Command(ctx context.Context, file string, linkerFlags ...string) *exec.Cmd {
	linker := strings.Join(append([]string{"-s -w"}, linkerFlags...), " ")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", linker, "-o", file, "podd/cmd/podd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+strings.TrimSpace(flags))
	return build
}

// Package release builds podd with the settings of a release.
//
// The file tags contains the build tags, which make the binary smaller. The Makefile also reads
// this file.
//   - grpcnotrace excludes the traces of gRPC, and with them html/template.
//   - nethttpomithttp2 excludes HTTP/2 from net/http. podd's own servers and clients use HTTP/1.1.
//     client-go and gRPC use HTTP/2 from golang.org/x/net.
//   - http2legacy includes HTTP/2 in golang.org/x/net with Go 1.27 and later. Without this tag,
//     golang.org/x/net would use net/http's implementation.
package release

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"strings"
)

//go:embed tags
var tags string

// Command returns a command that builds podd and writes it to file. Its environment is that of this
// process, except that cgo is disabled. The working directory of the command must be in the module
// podd. linkerFlags are flags of go tool link, for example "-X main.version=1.0.0".
func Command(ctx context.Context, file string, linkerFlags ...string) *exec.Cmd {
	flags := strings.Join(append([]string{"-s -w"}, linkerFlags...), " ")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", strings.TrimSpace(tags), "-ldflags", flags, "-o", file, "podd/cmd/podd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	return build
}

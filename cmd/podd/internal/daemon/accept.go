package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"podd/cmd/podd/internal/sources"
	"podd/manifest/source"
	"podd/server"
)

// An acceptor accepts changes of the host, such as a new hostname, on behalf of a user. podd
// reports such a change as a problem until a user accepts the change.
type acceptor struct {
	nodeNamer *nodeNamer
	sources   []source.Source
}

// accept accepts a change and returns a message that describes the effect.
func (a acceptor) accept(ctx context.Context, change server.AcceptedChange) (message string, err error) {
	switch change.Change {
	case "node-name":
		return a.nodeNamer.accept()
	case "empty":
		return acceptEmptyDir(ctx, a.sources, change.Source)
	}
	return "", &server.Error{Status: http.StatusBadRequest, Message: fmt.Sprintf("accepting %.40q: unknown change; must be node-name or empty", change.Change)}
}

// acceptEmptyDir accepts the content of the directory called name, so that podd deletes the pods
// whose manifests are missing in this directory. Until then podd keeps these pods, because it has
// read their manifests from another mount or directory at the same path.
func acceptEmptyDir(ctx context.Context, manifestSources []source.Source, name string) (message string, err error) {
	for _, s := range manifestSources {
		dir, ok := s.(*source.Dir)
		if !ok || s.Name() != name {
			continue
		}
		err := dir.AcceptEmpty(ctx)
		if errors.Is(err, source.ErrNothingToAccept) {
			return "", &server.Error{Status: http.StatusConflict, Message: fmt.Sprintf("accepting directory %s: %v", name, err)}
		}
		if err != nil {
			return "", fmt.Errorf("accepting directory %s: %w", name, err)
		}
		return fmt.Sprintf("directory %s accepted; podd stops the pods of the missing manifests; run \"podd ps\" for their state", name), nil
	}
	return "", &server.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("accepting %s: not a manifest directory of podd; the sources are %s", name, strings.Join(sources.Names(manifestSources), ", "))}
}

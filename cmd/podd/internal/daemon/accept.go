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

// An acceptor applies changes of the host that podd has reported as problems.
type acceptor struct {
	name    *nodeNamer
	sources []source.Source
}

// accept applies a change.
func (a acceptor) accept(ctx context.Context, change server.Acceptance) (string, error) {
	switch change.Change {
	case "node-name":
		return a.name.accept()
	case "empty":
		return acceptEmpty(ctx, a.sources, change.Source)
	}
	return "", &server.Error{Status: http.StatusBadRequest, Message: fmt.Sprintf("accepting %.40q: unknown kind of change", change.Change)}
}

// acceptEmpty deletes the pods whose manifests are missing from a directory, although podd
// read them from another directory or mount.
func acceptEmpty(ctx context.Context, all []source.Source, name string) (string, error) {
	for _, s := range all {
		dir, ok := s.(*source.Dir)
		if !ok || s.Name() != name {
			continue
		}
		err := dir.AcceptEmpty(ctx)
		if errors.Is(err, source.ErrNothingMissing) {
			return "", &server.Error{Status: http.StatusConflict, Message: fmt.Sprintf("accepting %s as it is: %v", name, err)}
		}
		if err != nil {
			return "", fmt.Errorf("accepting %s as it is: %w", name, err)
		}
		return fmt.Sprintf("%s is taken as it is; the pods of manifests that are missing from it end, podd ps shows it", name), nil
	}
	return "", &server.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("%s is no directory of manifests of this podd; it reads %s", name, strings.Join(sources.Names(all), ", "))}
}

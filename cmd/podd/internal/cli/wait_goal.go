package cli

import (
	"errors"
	"path/filepath"
	"slices"

	"podd/cmd/podd/internal/paths"
	"podd/server"
)

// A goal is an argument of podd wait: a pod, or a file with pods.
type goal struct {
	PodSelector
	arg           string
	isFile        bool // arg is a local file, or the base name of a manifest
	mustBeApplied bool // the pod must be ready and run the version in the file
	// digests contains the digest of each file at the time at which podd wait first read the file.
	// The keys are arg, if podd wait read it before its first View, and paths in the View.
	digests map[string]string
}

// find returns the pod or the file of the goal. It returns an error if v contains neither yet.
func (g *goal) find(v *server.View) (subject, error) { return g.findSubject(v, g.arg) }

// A refusedError is the error of a goal that cannot be met because podd refused the content of its
// file.
type refusedError struct{ path string }

func (e refusedError) Error() string {
	return "the current content of " + e.path + " was refused; correct its errors"
}

// A noPodsError is the error of a goal that cannot be met because podd runs no pod of the file.
type noPodsError struct {
	file      string
	hasErrors bool // podd reports errors of the file
}

func (e noPodsError) Error() string {
	if e.hasErrors {
		return "podd runs no pod of " + e.file + "; correct the errors of the file"
	}
	return e.file + " contains no pods"
}

// isMet reports whether v meets the goal. It returns an error if no later View can meet the goal. The
// error is a refusedError if podd has refused the content of the file that the goal waits for, and a
// noPodsError if this content is in effect and has no pods.
func (g *goal) isMet(v *server.View) (met bool, err error) {
	s, err := g.find(v)
	if err != nil {
		abs, absErr := filepath.Abs(g.arg)
		_, isIgnored := errors.AsType[ignoredFileError](err)
		if isOutside := absErr != nil || !isInSources(v, abs); g.isFile && (isIgnored || isOutside) {
			return false, err
		}
		return false, nil
	}
	if err := g.checkNotRefused(v, s); err != nil {
		return false, err
	}
	if err := g.checkHasPods(v, s); err != nil {
		return false, err
	}
	pods := s.pods(v)
	for _, p := range pods {
		if !p.Ready || p.Pod.DeletionTimestamp != nil {
			return false, nil
		}
		if ok, err := g.isApplied(v, p); g.mustBeApplied && !ok {
			return false, err
		}
	}
	return len(pods) > 0, nil
}

// checkNotRefused returns a refusedError if the goal waits for the content of a file that podd has
// refused.
func (g *goal) checkNotRefused(v *server.View, s subject) error {
	path := s.filePath(v)
	refusedDigest := findFile(v, path).RefusedDigest
	if !g.mustBeApplied || refusedDigest == "" || paths.IsURL(path) {
		return nil
	}
	digest, err := g.digest(path)
	if err == nil && digest == refusedDigest {
		err = refusedError{path}
	}
	return err
}

// checkHasPods returns an error if the goal waits for a file without pods, or for a file that podd does
// not read.
func (g *goal) checkHasPods(v *server.View, s subject) error {
	if !g.isFile || len(s.pods(v)) > 0 {
		return nil
	}
	f := findFile(v, s.path)
	if reason := ignoredReason(v, s.path); f.Path == "" && reason != "" {
		return ignoredFileError{g.arg, reason}
	}
	digest, err := g.digest(s.path)
	if err != nil || f.Digest != digest || f.OutdatedReason != "" {
		return err
	}
	hasErrors := slices.ContainsFunc(v.Problems, func(p server.ProblemView) bool {
		return p.Path == s.path && p.Severity == server.SeverityError
	})
	return noPodsError{g.arg, hasErrors}
}

// digest returns the digest that the file with this path had when podd wait first read it.
func (g *goal) digest(path string) (string, error) {
	if g.isFile && paths.SameFile(path, g.arg) {
		path = g.arg
	}
	if digest, isRead := g.digests[path]; isRead {
		return digest, nil
	}
	digest, err := fileDigest(path)
	if err == nil {
		g.digests[path] = digest
	}
	return digest, err
}

// pods returns the pods of the goal, or none if the goal does not exist yet.
func (g *goal) pods(v *server.View) []*server.PodView {
	s, err := g.find(v)
	if err != nil {
		return nil
	}
	return s.pods(v)
}

// pods returns the pods of a subject: the pod itself, or the pods in the file.
func (s subject) pods(v *server.View) []*server.PodView {
	if s.path == "" {
		return filter(v.Pods, func(p *server.PodView) bool { return p.Key() == s.key })
	}
	return podsInFile(v, s.path)
}

// filePath returns the path of the subject's file: the file itself, or the manifest of the pod.
func (s subject) filePath(v *server.View) string {
	if p := v.Pod(s.key); p != nil {
		return p.Path
	}
	return s.path
}

// isApplied reports whether p runs the version that the file of p contained when podd wait first
// read this file.
func (g *goal) isApplied(v *server.View, p *server.PodView) (applied bool, err error) {
	f := findFile(v, p.Path)
	if !p.IsCurrent || paths.IsURL(p.Path) {
		return p.IsCurrent && f.OutdatedReason == "", nil
	}
	digest, err := g.digest(p.Path)
	return err == nil && f.Digest == digest, err
}

// displayName returns the name of the goal for messages.
func (g *goal) displayName(v *server.View) string {
	if s, err := g.find(v); err == nil && s.path == "" {
		return displayName(v, s.key)
	}
	return g.arg
}

// conditionName returns the name of the condition that the goal waits for.
func (g *goal) conditionName() string {
	if g.mustBeApplied {
		return "applied"
	}
	return "ready"
}

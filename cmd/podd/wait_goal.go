package main

import (
	"path/filepath"

	"podd/server"
)

// goal is one thing to wait for.
type goal struct {
	Select
	word    string
	file    bool // word is a file on this machine
	applied bool // and not just ready
	// digests are those of files when they were first looked at, by the path or
	// word.
	digests map[string]string
}

// find is the pod or file that is meant; an error while there is none yet.
func (g *goal) find(v *server.View) (subject, error) {
	if !g.file {
		key, err := g.Select.find(v, knownKeys(v), g.word)
		if err == nil {
			return subject{key: key}, nil
		}
		if path := knownPath(v, g.word); path != "" {
			return subject{path: path}, nil
		}
		return subject{}, err
	}
	if path := knownPath(v, g.word); path != "" {
		return subject{path: path}, nil
	}
	return subject{}, unknownFileError(v, g.word)
}

// met says whether v has it; its error is that no later View can.
func (g *goal) met(v *server.View) (bool, error) {
	s, err := g.find(v)
	if err != nil {
		abs, absErr := filepath.Abs(g.word)
		if never := g.file && (absErr != nil || !inSources(v, abs)); never {
			return false, err
		}
		return false, nil
	}
	pods := s.pods(v)
	for _, p := range pods {
		if !p.Ready || p.Pod.DeletionTimestamp != nil {
			return false, nil
		}
		if ok, err := g.present(v, p); g.applied && !ok {
			return false, err
		}
	}
	return len(pods) > 0, nil
}

// pods are those that are waited for; none while none is there.
func (g *goal) pods(v *server.View) []*server.PodView {
	s, err := g.find(v)
	if err != nil {
		return nil
	}
	return s.pods(v)
}

func (s subject) pods(v *server.View) []*server.PodView {
	if s.path == "" {
		return filter(v.Pods, func(p *server.PodView) bool { return p.Key() == s.key })
	}
	return podsOf(v, s.path)
}

// present says whether p is what its file held when it was first looked at.
func (g *goal) present(v *server.View, p *server.PodView) (bool, error) {
	f := fileOf(v, p.Path)
	if !p.Current || isURL(p.Path) {
		return p.Current && f.Behind == "", nil
	}
	at := p.Path
	if g.file {
		at = g.word
	}
	want, ok := g.digests[at]
	if !ok {
		var err error
		if want, err = digestOf(at); err != nil {
			return false, err
		}
		g.digests[at] = want
	}
	return f.Digest == want, nil
}

// name is what messages call it.
func (g *goal) name(v *server.View) string {
	if s, err := g.find(v); err == nil && s.path == "" {
		return title(v, s.key)
	}
	return g.word
}

// wanted is the word for what is waited for.
func (g *goal) wanted() string {
	if g.applied {
		return "applied"
	}
	return "ready"
}

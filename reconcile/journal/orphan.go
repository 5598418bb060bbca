package journal

import (
	"context"
	"errors"
	"io/fs"

	"k8s.io/apimachinery/pkg/types"
)

// An Orphan is a pod directory without a valid journal. Therefore the name of its pod is unknown.
type Orphan struct {
	UID types.UID
	// ReadError is the error of reading the journal. It is nil if there is no journal.
	ReadError error
	// KeepReason is the reason why a directory without a journal is kept. It is "" before CheckData
	// is called, and if the directory need not be kept.
	KeepReason string
}

// MustKeep reports whether podd must keep the directory o until a user removes it. This is the case
// if its journal is unreadable, because the journal may record that a pod needs the directory. It
// is also the case if the directory contains data, because the data may belong to another agent.
func (o Orphan) MustKeep() bool { return o.ReadError != nil || o.KeepReason != "" }

// Reason returns the reason why o is kept.
func (o Orphan) Reason() string {
	if o.ReadError != nil {
		return "journal cannot be read: " + o.ReadError.Error()
	}
	return "no journal, " + o.KeepReason
}

// CheckData checks whether a directory without a journal must be kept, and returns o with
// KeepReason set to the reason. A directory whose volumes cannot be read must be kept.
func (s Store) CheckData(ctx context.Context, o Orphan) Orphan {
	if o.ReadError != nil || s.HasData == nil {
		return o
	}
	switch hasData, err := s.HasData(ctx, o.UID); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		o.KeepReason = "and podd cannot read its volumes: " + err.Error()
	case hasData:
		o.KeepReason = "but its volumes contain data"
	}
	return o
}

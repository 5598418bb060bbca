package journal

import (
	"context"
	"errors"
	"io/fs"

	"k8s.io/apimachinery/pkg/types"
)

// An Orphan is a pod directory without a valid journal, which would name its pod.
type Orphan struct {
	UID types.UID
	// Unreadable is why the journal cannot be read; nil if there is no journal.
	Unreadable error
	// Data is why the directory is kept although it has no journal. It is "" before
	// CheckData, or if the directory need not be kept.
	Data string
}

// Kept reports whether only a user may remove the directory o. This is the case if its
// journal is unreadable, because the journal may record that a pod needs the directory, or
// if its data may belong to another agent.
func (o Orphan) Kept() bool { return o.Unreadable != nil || o.Data != "" }

// Reason returns why o is kept.
func (o Orphan) Reason() string {
	if o.Unreadable != nil {
		return "journal cannot be read: " + o.Unreadable.Error()
	}
	return "no journal, " + o.Data
}

// CheckData returns o with Data set if a directory without a journal must be kept. A
// directory that cannot be read must be kept.
func (s Store) CheckData(ctx context.Context, o Orphan) Orphan {
	if o.Unreadable != nil || s.HasData == nil {
		return o
	}
	switch has, err := s.HasData(ctx, o.UID); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		o.Data = "and its volumes cannot be read: " + err.Error()
	case has:
		o.Data = "and data in its volumes"
	}
	return o
}

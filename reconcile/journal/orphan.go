package journal

import (
	"context"
	"errors"
	"io/fs"

	"k8s.io/apimachinery/pkg/types"
)

// An Orphan is a pod directory that does not name its pod.
type Orphan struct {
	UID types.UID
	// Unreadable is why its journal cannot be used; nil if it has none.
	Unreadable error
	// Data is why it is kept without a journal; "" if that is not known yet, or if it need
	// not be kept.
	Data string
}

// Kept reports whether only a user may remove o: its journal may record that a pod needs
// it, or its data may be another agent's.
func (o Orphan) Kept() bool { return o.Unreadable != nil || o.Data != "" }

// Reason returns why o is an orphan.
func (o Orphan) Reason() string {
	if o.Unreadable != nil {
		return "journal cannot be read: " + o.Unreadable.Error()
	}
	return "no journal, " + o.Data
}

// CheckData sets whether a directory without a journal must be kept. It must if that cannot
// be found out.
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

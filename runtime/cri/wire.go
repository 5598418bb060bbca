package cri

import (
	"google.golang.org/protobuf/encoding/protowire"

	"podd/runtime"
)

// The lists of a hundred pods contain the same labels and annotations in every relist. The
// types here decode the few fields that show whether something changed, and keep the rest
// as bytes, to be decoded only then. The field numbers are those of cri-api.

// wireList is a ListPodSandboxResponse or a ListContainersResponse.
type wireList struct{ items []wireItem }

// wireItem is a PodSandbox or a Container. Its slices point into the list's buffer.
type wireItem struct {
	id, sandbox []byte
	state       uint64
	raw         []byte
}

const (
	listItems = 1 // in both lists

	itemID           = 1 // in both items
	containerSandbox = 2
	stateOfSandbox   = 3
	stateOfContainer = 6
)

// UnmarshalBinary retains b.
func (l *wireList) UnmarshalBinary(b []byte) error {
	return eachField(b, func(n protowire.Number, f field) error {
		if n != listItems || f.bytes == nil {
			return nil
		}
		l.items = append(l.items, wireItem{raw: f.bytes})
		return nil
	})
}

// readSandbox decodes the fields of a PodSandbox.
func (i *wireItem) readSandbox() error {
	return eachField(i.raw, func(n protowire.Number, f field) error {
		switch n {
		case itemID:
			i.id = f.bytes
		case stateOfSandbox:
			i.state = f.number
		}
		return nil
	})
}

// readContainer decodes the fields of a Container.
func (i *wireItem) readContainer() error {
	return eachField(i.raw, func(n protowire.Number, f field) error {
		switch n {
		case itemID:
			i.id = f.bytes
		case containerSandbox:
			i.sandbox = f.bytes
		case stateOfContainer:
			i.state = f.number
		}
		return nil
	})
}

// wireEvent contains the decoded fields of a ContainerEventResponse, without the status of
// every container in the pod, which is most of it.
type wireEvent struct {
	kind            uint64
	namespace, name string
	instance        string
}

const (
	eventKind    = 2
	eventSandbox = 4

	statusMetadata = 2
	statusLabels   = 7

	metadataName      = 1
	metadataNamespace = 3

	entryKey   = 1
	entryValue = 2
)

// UnmarshalBinary does not retain b.
func (e *wireEvent) UnmarshalBinary(b []byte) error {
	*e = wireEvent{}
	return eachField(b, func(n protowire.Number, f field) error {
		switch n {
		case eventKind:
			e.kind = f.number
		case eventSandbox:
			return eachField(f.bytes, e.readStatus)
		}
		return nil
	})
}

func (e *wireEvent) readStatus(n protowire.Number, f field) error {
	switch n {
	case statusMetadata:
		return eachField(f.bytes, func(n protowire.Number, f field) error {
			switch n {
			case metadataName:
				e.name = string(f.bytes)
			case metadataNamespace:
				e.namespace = string(f.bytes)
			}
			return nil
		})
	case statusLabels:
		var key, value []byte
		err := eachField(f.bytes, func(n protowire.Number, f field) error {
			switch n {
			case entryKey:
				key = f.bytes
			case entryValue:
				value = f.bytes
			}
			return nil
		})
		if string(key) == runtime.LabelInstance {
			e.instance = string(value)
		}
		return err
	}
	return nil
}

// field is the value of one field: a number, or bytes in the message.
type field struct {
	number uint64
	bytes  []byte
}

// eachField calls visit for each field of a message. It skips fields of types that CRI does
// not use.
func eachField(b []byte, visit func(protowire.Number, field) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		var f field
		switch kind {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := visit(number, f); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

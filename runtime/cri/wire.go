package cri

import (
	"google.golang.org/protobuf/encoding/protowire"

	"podd/runtime"
)

// A relist of a hundred pods in which nothing happened is a hundred times the
// same labels and annotations. The types here read the few fields that tell
// whether anything did and keep the rest as bytes, to be decoded when it has.
// They are the same as the messages of cri-api, which says the numbers.

// wireList is a ListPodSandboxResponse or a ListContainersResponse.
type wireList struct{ items []wireItem }

// wireItem is a PodSandbox or a Container. All of it lies in the list's buffer.
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

// UnmarshalBinary keeps b.
func (l *wireList) UnmarshalBinary(b []byte) error {
	return eachField(b, func(n protowire.Number, f field) error {
		if n != listItems || f.bytes == nil {
			return nil
		}
		l.items = append(l.items, wireItem{raw: f.bytes})
		return nil
	})
}

// readSandbox reads the fields of a PodSandbox.
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

// readContainer reads the fields of a Container.
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

// wireEvent is what is read of a ContainerEventResponse: not the status of
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

// UnmarshalBinary keeps nothing of b.
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

// field is one field's value: a number, or bytes that lie in the message.
type field struct {
	number uint64
	bytes  []byte
}

// eachField walks over a message. Fields of types that CRI does not use are
// passed over.
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

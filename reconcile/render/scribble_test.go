package render

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// scribble overwrites every list element and map value of a message, to detect memory that the
// message shares with other values.
func scribble(m proto.Message) { scribbleOn(m.ProtoReflect()) }

func scribbleOn(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
				if f.MapValue().Kind() == protoreflect.StringKind {
					v.Map().Set(k, protoreflect.ValueOfString("scribbled"))
				}
				return true
			})
		case f.IsList():
			for i := range v.List().Len() {
				switch f.Kind() {
				case protoreflect.MessageKind:
					scribbleOn(v.List().Get(i).Message())
				case protoreflect.StringKind:
					v.List().Set(i, protoreflect.ValueOfString("scribbled"))
				case protoreflect.Int64Kind:
					v.List().Set(i, protoreflect.ValueOfInt64(-1))
				}
			}
		case f.Kind() == protoreflect.MessageKind:
			scribbleOn(v.Message())
		}
		return true
	})
}

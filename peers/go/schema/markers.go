package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
)

// markers reads the +name=value comments of types and fields from the sources.
type markers struct {
	packages map[string]map[string]map[string]string
}

func newMarkers() *markers {
	return &markers{packages: map[string]map[string]map[string]string{}}
}

func (m *markers) ofType(goType reflect.Type) map[string]string {
	if goType.Name() == "" || !strings.Contains(goType.PkgPath(), "/") {
		return nil
	}
	return m.of(goType.PkgPath())[goType.Name()]
}

func (m *markers) ofField(owner reflect.Type, name string) map[string]string {
	return m.of(owner.PkgPath())[owner.Name()+"."+name]
}

func (m *markers) of(pkg string) map[string]map[string]string {
	if found, ok := m.packages[pkg]; ok {
		return found
	}
	found := map[string]map[string]string{}
	m.packages[pkg] = found
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		fail(err)
	}
	names, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil {
		fail(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(filepath.Base(name), "generated") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			fail(err)
		}
		collect(file, found)
	}
	return found
}

func collect(file *ast.File, found map[string]map[string]string) {
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			typed, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			doc := typed.Doc
			if doc == nil {
				doc = general.Doc
			}
			found[typed.Name.Name] = parse(doc)
			structure, ok := typed.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range structure.Fields.List {
				for _, name := range field.Names {
					found[typed.Name.Name+"."+name.Name] = parse(field.Doc)
				}
			}
		}
	}
}

func parse(doc *ast.CommentGroup) map[string]string {
	marks := map[string]string{}
	if doc == nil {
		return marks
	}
	for _, comment := range doc.List {
		text := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
		name, value, ok := strings.Cut(strings.TrimPrefix(text, "+"), "=")
		if !ok || !strings.HasPrefix(text, "+") {
			continue
		}
		if name == "listMapKey" && marks[name] != "" {
			value = marks[name] + "," + value
		}
		marks[name] = value
	}
	return marks
}

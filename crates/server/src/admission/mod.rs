//! Admission: plugins that change or refuse objects before they are stored, one a file.

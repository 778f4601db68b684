"""Names that no code of the package reads, because something else does: the allow list of vulture.

A name stands here with its reader. A name that has no reader goes from the package, not in here.
"""

# click asks its groups, types and options for these.
_.get_command
_.format_options
_.shell_complete
_.envvar_list_splitter

# sys and uvicorn read what is set here, and call what is defined.
_.unraisablehook
_.capture_signals
_.force_exit
_.send_400_response
_.disconnected
_.eof_received

# h2 and hpack read what is set here, and call what is defined.
_.MAX_CLOSED_STREAMS
_._terminate_connection
_.local_settings
_.max_header_list_size

# Messages of protobuf, which are sent.
_.valid_host
_.base_type_name
_.error_message

# pydantic reads its configuration by name; rows of tables and saved files are read by their fields.
_.model_config
_.recorded_at
_.kept_until
_.format_version
_.integrity

# http.server calls it.
_.do_POST

# uvicorn calls it now and then.
_.callback_notify
_.timeout_notify

#!/usr/bin/env python3
"""Forwards TCP connections, as kube-proxy would for one Service.

    forward.py HOST PORT TO_HOST TO_PORT
"""

import asyncio
import sys


async def main(host, port, to_host, to_port):
    async def pump(reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def handle(reader, writer):
        try:
            to_reader, to_writer = await asyncio.open_connection(to_host, int(to_port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, to_writer), pump(to_reader, writer))

    async with await asyncio.start_server(handle, host, int(port)) as server:
        await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
